"""A `UdpStack` or a `NetworkBridge` on a line; in simulation with three clocks.

The user of a stack sends each datagram back; a bridge has memory and window.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby, repeat
from random import Random
from typing import Any

import numpy as np
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal
from amaranth.lib import wiring
from numpy.typing import NDArray
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether

import cppsim
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.ethernet import NetworkBridge, UdpStack
from support.board.model import MemoryDevice
from support.ethernet.datagrams import NetworkRules, answers_in, datagram_of
from support.ethernet.line import (
    BOARD,
    HOST_MAC,
    HOST_PORT,
    Burst,
    bursts_on,
    checked,
    datagram,
    gmii,
    on_line,
)
from support.rtl.memory import ReadServer, WriteServer
from support.rtl.streams import NO_STALLS, Driven, Stalls
from support.serial.frames import Reply, hello

PERIODS = {"rx": 8.0e-9, "tx": 8.0008e-9, "sync": 20e-9}
"""Seconds. The two clocks of the line differ by 100 ppm; the user's is slow."""


class Loop(Elaboratable):
    """A stack whose datagrams are sent back; with ``check``, it accepts those of the link alone."""

    def __init__(self, *, check: bool = False) -> None:
        self.stack = UdpStack(BOARD, check=check)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.stack = stack = self.stack
        wiring.connect(m, stack.received, stack.sent)
        return m


class LineBench:
    """Runs a circuit, which is compiled once, at its ``rx`` and ``tx``.

    ``sync``: the period of that clock; the others are those of PERIODS.
    """

    def __init__(self, circuit: Any, ports: Any, sync: float = PERIODS["sync"]) -> None:
        self._ports = ports
        self._cycle = Signal(32)
        m = Module()
        for name in PERIODS:
            m.domains += ClockDomain(name)
        m.submodules.circuit = circuit
        m.d.tx += self._cycle.eq(self._cycle + 1)
        self._simulator = cppsim.Simulator(m)
        for number, (domain, period) in enumerate((PERIODS | {"sync": sync}).items()):
            self._simulator.add_clock(period, phase=period * (0.3 + 0.1 * number), domain=domain)
        self._simulator.add_testbench(self._send)
        self._simulator.add_testbench(self._listen, background=True)
        self._ran = False

    def on_line(self, bursts: Sequence[Burst], after: int) -> list[Burst]:
        """Return what is sent from the reset on while ``bursts`` come, and ``after`` cycles."""
        self._line = gmii(bursts, after)
        self._heard: list[tuple[int, ...]] = []
        if self._ran:
            self._simulator.reset()
        self._ran = True
        self._simulator.run()
        return bursts_on(self._columns())

    async def _send(self, ctx: Any) -> None:
        rx = self._ports.rx
        drive, tick = Driven(ctx, rx.valid, rx.error, rx.data), ctx.tick("rx")
        columns = [self._line[name].tolist() for name in ("valid", "error", "data")]
        for values, cycles in groupby(zip(*columns, strict=True)):
            drive(*values)
            await tick.repeat(sum(1 for _ in cycles))

    async def _listen(self, ctx: Any) -> None:
        """Note the cycles in which ``tx`` is valid: number, byte and error."""
        tx = self._ports.tx
        tick = ctx.tick("tx").sample(tx.data, tx.error, tx.valid)
        while True:
            data, error, valid = await tick.until(tx.valid)
            cycle = int(ctx.get(self._cycle)) - 1
            while valid:
                self._heard.append((cycle, data, error, valid))
                *_, data, error, valid = await tick
                cycle += 1

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Return the line ``tx`` in every cycle, up to the last that is valid."""
        cycle, *values = np.array(self._heard, int).reshape(-1, 4).T
        columns = np.zeros((3, cycle.max(initial=-1) + 1), np.uint8)
        columns[:, cycle] = values
        return dict(zip(("data", "error", "valid"), columns, strict=True))


class StackBench(LineBench):
    """Runs a `Loop`."""

    def __init__(self, *, check: bool = False) -> None:
        loop = Loop(check=check)
        super().__init__(loop, loop.stack)

    def run(self, bursts: Sequence[Burst], after: int = 4000) -> list[Burst]:
        """Return what the stack transmits while it receives ``bursts``, and ``after`` cycles."""
        return self.on_line(bursts, after)

    def answers(self, frames: Iterable[Any], idle: int = 600) -> list[bytes]:
        """Return the legal frames that answer ``frames`` or bursts, which come after a reset."""
        bursts = [x if isinstance(x, Burst) else on_line(bytes(x), idle) for x in frames]
        return [checked(burst) for burst in self.run(bursts)]


CONFIGURATION = Configuration(
    data_width=64, address_width=17, memory_base=0, memory_bytes=1 << 16, block_ram=True
)

CLOCK_HZ = 1600
"""Clocks of ``sync`` in a second of a session: few, so that it can expire in a test."""

SLOW = Stalls(seed=1, probability=0.6, longest=6)
"""A memory that transfers one request, beat or response in some 9 cycles."""


class _EverySecond(Stalls):
    def lengths(self, salt: str) -> Iterator[int]:
        return repeat(1)


EVERY_SECOND = _EverySecond()
"""A memory that transfers a request, beat or response in every second cycle."""


@dataclass
class DeviceMemory:
    """The memory of a device behind ports whose beats have ``beat_bytes`` bytes."""

    device: MemoryDevice
    beat_bytes: int

    def read(self, address: int) -> tuple[int, bool]:
        self._expect_inside(address)
        return int.from_bytes(self.device.read(address, self.beat_bytes), "little"), False

    def write(self, address: int, value: int, strobe: int) -> bool:
        self._expect_inside(address)
        for number, byte in enumerate(value.to_bytes(self.beat_bytes, "little")):
            if strobe >> number & 1:
                self.device.write(address + number, bytes([byte]))
        return False

    def _expect_inside(self, address: int) -> None:
        offset = address - self.device.memory_base
        assert 0 <= offset <= self.device.memory_bytes - self.beat_bytes, f"{address:#x}"


class BridgeBench(LineBench):
    """Runs a bridge, which is compiled once.

    ``device`` is its memory and window; ``stalls`` and ``latency`` are those of the memory. See
    `LineBench` for ``sync``.
    """

    def __init__(self, data_width: int = 64, *, sync: float = PERIODS["sync"]) -> None:
        configuration = replace(CONFIGURATION, data_width=data_width)
        self._beat_bytes = data_width // 8
        self._bridge = bridge = NetworkBridge(configuration, BOARD, CLOCK_HZ)
        super().__init__(bridge, bridge, sync)
        for testbench in (self._read, self._write, self._control, self._note):
            self._simulator.add_testbench(testbench, background=True)

    def run(
        self,
        bursts: Sequence[Burst],
        device: MemoryDevice,
        after: int = 6000,
        *,
        stalls: Stalls = NO_STALLS,
        latency: int = 0,
        transfers: dict[str, list[int]] | None = None,
    ) -> list[Burst]:
        """Return the line from the reset on, while the board receives ``bursts``, and ``after``.

        ``transfers`` gets the cycles of ``sync`` in which streams in the bridge transfer a word.
        """
        self._device, self._stalls, self._latency = device, stalls, latency
        self._transfers = transfers
        return self.on_line(bursts, after)

    async def _note(self, ctx: Any) -> None:
        if self._transfers is None:
            return
        bridge = self._bridge
        streams = {
            "received": bridge._stack.received,
            "requests": bridge._reader.o,
            "answers": bridge._executor.o,
            "bursts": bridge.read.request,
            "beats": bridge.read.data,
            "words": bridge._mover.transfer.read,
            "sent": bridge._stack.sent,
        }
        tick = ctx.tick("sync").sample(*(each.valid & each.ready for each in streams.values()))
        for cycle in count():
            _, _, *levels = await tick
            for name, level in zip(streams, levels, strict=True):
                self._transfers.setdefault(name, []).extend([cycle] * level)

    async def _read(self, ctx: Any) -> None:
        await self._serve(ReadServer, self._bridge.read).run(ctx)

    async def _write(self, ctx: Any) -> None:
        await self._serve(WriteServer, self._bridge.write).run(ctx)

    def _serve(self, server: type[ReadServer | WriteServer], port: Any) -> ReadServer | WriteServer:
        memory = DeviceMemory(self._device, self._beat_bytes)
        idles = self._stalls is not EVERY_SECOND  # of which each cycle counts
        return server(port, memory, self._latency, self._stalls, idles=idles)

    async def _control(self, ctx: Any) -> None:
        """Serve the window. Read data are valid for one cycle only."""
        control, device = self._bridge.control, self._device
        ctx.set(self._bridge.interrupt, device.interrupt)
        access = Cat(control.read, control.write)
        tick = ctx.tick().sample(access, control.address, control.write_data)
        kind = 1
        while True:
            # The cycle behind an access is needed, to end its data.
            kind, offset, word = (await (tick if kind else tick.until(access)))[-3:]
            value = 0xA5A5A5A5
            if kind & 2:
                device.write(CONTROL_BASE + offset, word.to_bytes(4, "little"))
            elif kind & 1:
                value = int.from_bytes(device.read(CONTROL_BASE + offset, 4), "little")
            ctx.set(control.read_data, value)


# --- sessions -------------------------------------------------------------------------------------

SESSION, OTHER = 0x12345678, 0x9ABCDEF0


def device() -> MemoryDevice:
    """Return a device with random bytes."""
    made = MemoryDevice(CONFIGURATION.memory_base, CONFIGURATION.memory_bytes)
    rng = Random(1)
    made.memory[:] = rng.randbytes(len(made.memory))
    made.window[:] = rng.randbytes(len(made.window))
    return made


def line_of(payloads: Sequence[bytes], idle: int | Sequence[int] = 3000) -> list[Burst]:
    idles = [idle] * len(payloads) if isinstance(idle, int) else idle
    return [
        on_line(bytes(datagram(payload)), wait)
        for payload, wait in zip(payloads, idles, strict=True)
    ]


def sent_in(bursts: Sequence[Burst]) -> list[bytes]:
    """Return the datagrams that were sent to the host."""
    frames = [Ether(checked(burst)) for burst in bursts]
    assert all(each.dst == HOST_MAC and each[UDP].dport == HOST_PORT for each in frames)
    return [bytes(each[UDP].payload)[: each[UDP].len - 8] for each in frames]


def expect(
    bench: BridgeBench,
    payloads: Sequence[bytes],
    idle: int | Sequence[int] = 3000,
    *,
    interrupt: bool = False,
    **options: Any,
) -> list[tuple[int, list[Reply]]]:
    """Send datagrams; expect answers and storage as by the rules, and return the answers."""
    real, model = device(), device()
    real.interrupt = model.interrupt = interrupt
    rules = NetworkRules(model)
    sent = sent_in(bench.run(line_of(payloads, idle), real, **options))
    expected = [
        (int.from_bytes(payload[:4], "little"), each)
        for payload in payloads
        for each in rules.replies(payload)
    ]
    found = [answers_in(each, like) for each, (_, like) in zip(sent, expected, strict=True)]
    assert found == expected
    assert real.memory == model.memory
    assert real.window == model.window
    assert real.changes == model.changes, "more was written than changed"
    return found


def start(session: int = SESSION, number: int = -1, nonce: int = 0x1000) -> bytes:
    """Return the datagram of a HELLO that expects ``number`` + 1."""
    return datagram_of(session, [hello(number, nonce)])
