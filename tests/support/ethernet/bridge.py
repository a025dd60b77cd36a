"""A `NetworkBridge` on a line, with memory and window; in simulation with three clocks."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module

import cppsim
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.ethernet.network_bridge import NetworkBridge
from support.board.model import MemoryDevice
from support.ethernet.line import Burst, bursts_on, gmii
from support.ethernet.packets import BOARD
from support.ethernet.stack import PERIODS

CONFIGURATION = Configuration(
    data_width=32, address_width=17, memory_base=0, memory_bytes=1 << 16, block_ram=True
)


class _Board(Elaboratable):
    def __init__(self, clock_hz: int) -> None:
        self.bridge = NetworkBridge(CONFIGURATION, BOARD, clock_hz)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name in PERIODS:
            m.domains += ClockDomain(name)
        m.submodules.bridge = self.bridge
        return m


class BridgeBench:
    """Runs a bridge, which is compiled once.

    ``device`` is its memory and window; ``stalls``: the memory is ready in a quarter of all cycles.
    """

    def __init__(self, clock_hz: int = 50_000_000) -> None:
        board = _Board(clock_hz)
        self._bridge = board.bridge
        self._simulator = cppsim.Simulator(board)
        for number, (domain, period) in enumerate(PERIODS.items()):
            self._simulator.add_clock(period, phase=period * (0.3 + 0.1 * number), domain=domain)
        self._simulator.add_testbench(self._send)
        self._simulator.add_testbench(self._listen, background=True)
        self._simulator.add_testbench(self._access, background=True)
        self._ran = False

    def run(
        self,
        bursts: Sequence[Burst],
        device: MemoryDevice,
        after: int = 6000,
        *,
        stalls: bool = False,
    ) -> list[Burst]:
        """Return the line from the reset on, while the board receives ``bursts``, and ``after``."""
        self._line = gmii(bursts, after)
        self._heard: dict[str, list[int]] = {"data": [], "valid": [], "error": []}
        self._device, self._stalls = device, stalls
        if self._ran:
            self._simulator.reset()
        self._ran = True
        self._simulator.run()
        return bursts_on({name: np.array(column) for name, column in self._heard.items()})

    async def _send(self, ctx: Any) -> None:
        rx = self._bridge.rx
        columns = [self._line[name].tolist() for name in ("data", "valid", "error")]
        for data, valid, error in zip(*columns, strict=True):
            if valid:
                ctx.set(rx.data, data)
            ctx.set(rx.valid, valid)
            ctx.set(rx.error, error)
            await ctx.tick("rx")

    async def _listen(self, ctx: Any) -> None:
        tx = self._bridge.tx
        async for *_, data, valid, error in ctx.tick("tx").sample(tx.data, tx.valid, tx.error):
            self._heard["data"].append(data)
            self._heard["valid"].append(valid)
            self._heard["error"].append(error)

    async def _access(self, ctx: Any) -> None:
        """Serve memory and window. Read data are valid for one cycle only."""
        memory, control = self._bridge.memory, self._bridge.control
        rng = random.Random(1)
        device = self._device
        ctx.set(self._bridge.interrupt, device.interrupt)
        ready = True
        ctx.set(memory.ready, ready)
        sampled = ctx.tick().sample(
            Cat(memory.enable, memory.write, control.read, control.write),
            memory.address,
            memory.write_data,
            control.address,
            control.write_data,
        )
        async for *_, access, address, byte, offset, word in sampled:
            if access & 1 and ready:
                if access & 2:
                    device.write(address, bytes([byte]))
                else:
                    ctx.set(memory.read_data, device.read(address, 1)[0])
            elif access & 8:
                device.write(CONTROL_BASE + offset, word.to_bytes(4, "little"))
            elif access & 4:
                value = device.read(CONTROL_BASE + offset, 4)
                ctx.set(control.read_data, int.from_bytes(value, "little"))
            else:
                ctx.set(memory.read_data, 0xA5)
                ctx.set(control.read_data, 0xA5A5A5A5)
            if self._stalls:
                ready = rng.random() < 0.25
                ctx.set(memory.ready, ready)
