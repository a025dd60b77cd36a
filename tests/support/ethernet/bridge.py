"""A `NetworkBridge` on a line, with memory and window; in simulation with three clocks."""

import random
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module

from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.ethernet.network_bridge import NetworkBridge
from support.board.model import MemoryDevice
from support.ethernet.line import Burst
from support.ethernet.packets import BOARD
from support.ethernet.stack import PERIODS, LineBench

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


class BridgeBench(LineBench):
    """Runs a bridge, which is compiled once.

    ``device`` is its memory and window; ``stalls``: the memory is ready in a quarter of all cycles.
    """

    def __init__(self, clock_hz: int = 50_000_000) -> None:
        board = _Board(clock_hz)
        self._bridge = board.bridge
        super().__init__(board, board.bridge)
        self._simulator.add_testbench(self._access, background=True)

    def run(
        self,
        bursts: Sequence[Burst],
        device: MemoryDevice,
        after: int = 6000,
        *,
        stalls: bool = False,
    ) -> list[Burst]:
        """Return the line from the reset on, while the board receives ``bursts``, and ``after``."""
        self._device, self._stalls = device, stalls
        return self.on_line(bursts, after)

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
