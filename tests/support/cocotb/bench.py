"""An exported core between third-party bus models, for tests that run inside a simulator."""

import json
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Event, First, RisingEdge, SimTimeoutError, with_timeout
from cocotbext.axi import (
    AxiBus,
    AxiLiteBus,
    AxiLiteMaster,
    AxiRamRead,
    AxiRamWrite,
    AxiReadBus,
    AxiResp,
)
from numpy.typing import NDArray

from bitlane_rtl.abi import RECORD_BYTES, RING_OFFSET, Port, Status, register
from bitlane_rtl.configuration import Configuration
from support.commands import Outcome, expected
from support.rtl.records import Task, pack

CORE = "BITLANE_CORE"
"""The environment variable of the configuration as JSON."""

_NS = 10
_CYCLES = 20_000
"""Cycles that a test waits for the core at most."""


def configuration() -> Configuration:
    """Return the configuration with which the core was exported."""
    return Configuration(**json.loads(os.environ[CORE]))


SPACE = 1 << 32
"""Size of the bus's address space; the models wrap addresses beyond the memory's length."""


@dataclass
class Memory:
    """Bytes from ``base`` on, in the form in which `cocotbext.axi` takes a memory.

    ``bad`` are bytes whose beat is answered with ``response``.
    """

    data: NDArray[np.uint8]
    base: int = 0
    bad: frozenset[int] = frozenset()
    response: AxiResp = AxiResp.SLVERR
    outside: list[str] = field(default_factory=list)
    """Accesses to addresses that the memory does not have."""
    reads: int = 0
    writes: int = 0
    """Runs of bytes that were read and written."""

    def __len__(self) -> int:
        return SPACE

    def __getitem__(self, where: slice) -> bytes:
        self.reads += 1
        return self.data[self._place(where, "read")].tobytes()

    def __setitem__(self, where: slice, data: bytes) -> None:
        self.writes += 1
        self.data[self._place(where, "write")] = np.frombuffer(data, np.uint8)

    def _place(self, where: slice, what: str) -> slice:
        first, end = where.start - self.base, where.stop - self.base
        if not 0 <= first <= end <= self.data.size:
            self.outside.append(f"{what} of {where.start:#x} to {where.stop - 1:#x}")
            raise IndexError(self.outside[-1])
        if not self.bad.isdisjoint(range(where.start, where.stop)):
            raise OSError("told to fail")
        return slice(first, end)

    @contextmanager
    def failing(self, bad: frozenset[int], response: AxiResp) -> Iterator[None]:
        """Answer accesses to the bytes ``bad`` with ``response``."""
        self.bad, self.response = bad, response
        yield
        self.bad = frozenset()


def connect(dut: Any, memory: Memory, two: bool) -> dict[str, Any]:
    """Attach models of a memory to all managers of a core; return their channels, by name.

    The models send SLVERR alone. A test that requests DECERR gets it in place of SLVERR.
    """
    bus = AxiBus.from_prefix(dut, "m_axi")
    write = AxiRamWrite(bus.write, dut.clk, dut.rst, mem=memory)
    read = AxiRamRead(bus.read, dut.clk, dut.rst, mem=memory)
    channels = {"aw": write.aw_channel, "w": write.w_channel, "b": write.b_channel}
    channels |= {"ar": read.ar_channel, "r": read.r_channel}
    _translate(write.b_channel, "bresp", memory)
    _translate(read.r_channel, "rresp", memory)
    if two:
        second = AxiRamRead(AxiReadBus.from_prefix(dut, "m_axi_b"), dut.clk, dut.rst, mem=memory)
        channels |= {"ar_b": second.ar_channel, "r_b": second.r_channel}
        _translate(second.r_channel, "rresp", memory)
    return channels


def _translate(channel: Any, name: str, memory: Memory) -> None:
    send = channel.send

    async def translated(item: Any) -> None:
        if getattr(item, name) == AxiResp.SLVERR:
            setattr(item, name, memory.response)
        await send(item)

    channel.send = translated


class Bench:
    """A core, its memory of random bytes, and its control window.

    Attributes
    ----------
    memory : Memory
    channels : dict
        The memory's channels, by name.
    broken : list of str
        Violations of AXI4 by the core, beside those that the models assert themselves.
    """

    def __init__(self, dut: Any, name: str) -> None:
        self.dut = dut
        self.configuration = configuration()
        self.generator = random.Random(f"{name} 0")
        data = np.frombuffer(
            self.generator.randbytes(self.configuration.memory_bytes), np.uint8
        ).copy()
        self.memory = Memory(data, self.configuration.memory_base)
        two = self.configuration.has_b and self.configuration.read_ports == 2
        cocotb.start_soon(Clock(dut.clk, _NS, "ns").start())
        dut.rst.value = 1
        self.channels = connect(dut, self.memory, two)
        self.control = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.submitted = 0
        self.broken: list[str] = []
        self.trouble = Event()

    async def reset(self, cycles: int = 3) -> None:
        """Hold the reset; the core must not start a transaction while it lasts (A3.1.2)."""
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 1)
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            for name in self._valids():
                if getattr(self.dut, name).value == 1:
                    self.broken.append(f"{name} is high in reset")
        self.dut.rst.value = 0
        self.submitted = 0
        await ClockCycles(self.dut.clk, 2)

    def _valids(self) -> list[str]:
        names = ["m_axi_awvalid", "m_axi_wvalid", "m_axi_arvalid", "s_axil_bvalid", "s_axil_rvalid"]
        return names + (["m_axi_b_arvalid"] if "ar_b" in self.channels else [])

    def pause(self, chance: float) -> None:
        """Stall all channels of the memory and the control window with probability ``chance``."""
        control = self.control
        ends = [*self.channels.values()]
        ends += [control.write_if.aw_channel, control.write_if.w_channel]
        ends += [control.write_if.b_channel, control.read_if.ar_channel, control.read_if.r_channel]
        for end in ends:
            end.set_pause_generator(self._pauses(chance) if chance else None)
            if not chance:
                end.pause = False

    def _pauses(self, chance: float) -> Iterator[bool]:
        generator = random.Random(self.generator.random())
        while True:
            yield generator.random() < chance

    def watch(self) -> None:
        """Start to check that an asserted valid and its payload hold until ready (A3.2.1)."""
        channels = {"m_axi_": ("aw", "w", "ar"), "s_axil_": ("b", "r")}
        if "ar_b" in self.channels:
            channels["m_axi_b_"] = ("ar",)
        payloads = {
            "aw": ("awaddr", "awlen"),
            "ar": ("araddr", "arlen"),
            "w": ("wdata", "wstrb", "wlast"),
            "b": ("bresp",),
            "r": ("rdata", "rresp"),
        }
        for bus, names in channels.items():
            for name in names:
                cocotb.start_soon(self._watch(bus, name, [bus + x for x in payloads[name]]))

    async def _watch(self, bus: str, name: str, payload: list[str]) -> None:
        valid, ready = (getattr(self.dut, f"{bus}{name}{x}") for x in ("valid", "ready"))
        signals = [getattr(self.dut, x) for x in payload]
        edge = RisingEdge(self.dut.clk)
        offered = None
        while True:
            await edge
            if self.dut.rst.value == 1:
                offered = None
                continue
            now = [x.value for x in signals] if valid.value == 1 else None
            if offered is not None and offered != now:
                self.broken.append(f"{bus}{name} changed before it was taken")
                self.trouble.set()
            offered = now if ready.value == 0 else None

    async def read(self, name: str, field: str = "") -> int:
        """Read a register, or a field of one."""
        entry = register(name)
        word = await self.control.read_dword(entry.offset)
        return entry[field].extract(word) if field else int(word)

    async def write(self, name: str, value: int) -> None:
        await self.control.write_dword(register(name).offset, value)

    async def submit(self, tasks: Sequence[Task]) -> None:
        """Write the records into the ring and ring the doorbell once. The last one interrupts."""
        slots = self.configuration.slots
        assert len(tasks) <= slots
        for number, task in enumerate(tasks):
            task.interrupt = number == len(tasks) - 1
            slot = (self.submitted + number) % slots
            words = pack(task)
            data = b"".join(word.to_bytes(4, "little") for word in words)
            await self.control.write(RING_OFFSET + slot * RECORD_BYTES, data)
        self.submitted += len(tasks)
        await self.write("INTERRUPT", 0b11)
        await self.write("DOORBELL", self.submitted & 0xFFFF)

    async def finish(self) -> None:
        """Wait for the interrupt, and until no transaction is open."""
        if self.dut.irq.value != 1:
            came = First(RisingEdge(self.dut.irq), self.trouble.wait())
            try:
                await with_timeout(came, _CYCLES * _NS, "ns")
            except SimTimeoutError:
                raise AssertionError(f"no interrupt within {_CYCLES} cycles") from None
        assert not self.broken, self.broken
        while not await self.read("STATUS", "DRAINED"):
            pass

    async def check(
        self,
        tasks: Sequence[Task],
        *,
        bad_reads: frozenset[int] = frozenset(),
        bad_writes: frozenset[int] = frozenset(),
    ) -> Outcome:
        """Execute ``tasks`` and compare with the model: memory, codes, interrupt, bus rules.

        After a fault, the memory may hold any part of the output of the failed command and of the
        commands behind it, because they are in flight when the bus answers. All other bytes must be
        as the model computes them.
        """
        before, already = self.memory.data.copy(), await self.read("RETIRED")
        model = expected(tasks, before, bad_reads=bad_reads, bad_writes=bad_writes)
        await self.submit(tasks)
        await self.finish()
        shown = f"{[str(task) for task in tasks]}"
        assert not self.memory.outside, f"{self.memory.outside}: {shown}"
        assert not self.broken, f"{self.broken}: {shown}"
        retired = (await self.read("RETIRED") - already) & 0xFFFF
        assert retired == model.retired, f"{retired} retired, not {model.retired}: {shown}"
        status = Status(await self.read("FAULT", "CODE"))
        if model.fault is None:
            assert status is Status.OK, f"{status.name}: {shown}"
            wrong = np.flatnonzero(self.memory.data != model.memory)
        else:
            assert status is model.fault.status, f"{status.name}: {shown}"
            port = Port(await self.read("FAULT", "PORT"))
            assert port is model.fault.port, f"{port.name}: {shown}"
            assert await self.read("FAULT", "INDEX") == model.retired + already
            whole = expected(tasks, before).memory
            wrong = np.flatnonzero((self.memory.data != model.memory) & (self.memory.data != whole))
        assert not wrong.size, f"{wrong.size} bytes differ, first {wrong[0]:#x}: {shown}"
        await self.write("INTERRUPT", 0b10)
        await ClockCycles(self.dut.clk, 2)
        assert self.dut.irq.value == 0
        return model
