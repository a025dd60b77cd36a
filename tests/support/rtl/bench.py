"""An engine with a memory on its native ports and a host on its control port, for tests."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from bitlane_rtl.abi import RECORD_WORDS, RING_OFFSET, Bits, Lane, Op, Status, register
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.engine import Engine
from support.rtl.memory import Memory, ReadServer, WriteServer
from support.rtl.records import Task, apply, pack
from support.rtl.streams import NO_STALLS, Stalls, compiled, simulate

__all__ = ["SIZE", "SMALL", "EngineBench", "configuration"]

SIZE = 1 << 13
"""Bytes of memory of the engines that `configuration` gives."""

SMALL: dict[str, Any] = {
    "read_ports": 1,
    "slots": 2,
    "lanes": frozenset({Lane.BITS_8}),
    "ops": frozenset(Op) - {Op.SEARCH, Op.SHIFT_LEFT},
    "block_ram": True,
}
"""Options of an engine without the features that can be left out.

Each engine of the quick tier is 32 or 64 bits wide without options, this one or the one with a
search array, because each takes 5 s to compile.
"""


def configuration(**options: Any) -> Configuration:
    return Configuration(memory_bytes=SIZE, **options)


class EngineBench:
    """An engine on ``memory_bytes`` of random memory.

    With ``compile_it``, it is compiled once for each configuration, which takes longer than a
    single test on Amaranth's own simulator.
    """

    def __init__(
        self,
        configuration: Configuration,
        latency: int = 0,
        stalls: Stalls = NO_STALLS,
        seed: int = 0,
        *,
        compile_it: bool = True,
    ) -> None:
        self.configuration = configuration
        self.dut = compiled(Engine, configuration) if compile_it else Engine(configuration)
        data = np.random.default_rng(seed).integers(
            0, 256, configuration.memory_bytes, dtype=np.uint8
        )
        self.memory = Memory(data, configuration.data_bytes)
        self.read_a = ReadServer(self.dut.read_a, self.memory, latency, stalls, "a")
        self.servers: list[Any] = [self.read_a]
        if hasattr(self.dut, "read_b"):
            self.read_b = ReadServer(self.dut.read_b, self.memory, latency, stalls, "b")
            self.servers.append(self.read_b)
        self.writes = WriteServer(self.dut.write, self.memory, latency, stalls)
        self.servers.append(self.writes)
        self.submitted = 0
        self.doorbells: list[int] = []
        """Cycles in which DOORBELL was written."""
        self.fault_address = 0
        """FAULT_ADDRESS after `execute`."""

    def run(self, host: Callable[[Any], Awaitable[None]], deadline: int = 20_000) -> None:
        simulate(self.dut, host, background=self.servers, deadline=deadline)

    @property
    def cycle(self) -> int:
        return self.read_a.cycle

    async def write(self, ctx: Any, offset: int, value: int) -> None:
        port = self.dut.control
        ctx.set(port.address, offset)
        ctx.set(port.write_data, value)
        ctx.set(port.write, 1)
        await ctx.tick()
        ctx.set(port.write, 0)

    async def read(self, ctx: Any, offset: int) -> int:
        port = self.dut.control
        ctx.set(port.address, offset)
        ctx.set(port.read, 1)
        await ctx.tick()
        ctx.set(port.read, 0)
        return int(ctx.get(port.read_data))

    async def register(self, ctx: Any, name: str, field: str = "") -> int:
        entry = register(name)
        word = await self.read(ctx, entry.offset)
        return (entry[field] if field else Bits(name, 0, 32)).extract(word)

    async def load(self, ctx: Any, words: Sequence[int], ahead: int = 0) -> None:
        """Write a record into the ring without submitting it."""
        slot = (self.submitted + ahead) % self.configuration.slots
        for number, word in enumerate(words):
            await self.write(ctx, RING_OFFSET + 4 * (slot * RECORD_WORDS + number), word)

    async def ring(self, ctx: Any, count: int = 1) -> None:
        """Submit ``count`` records that were loaded."""
        self.submitted += count
        self.doorbells.append(self.cycle + 1)  # the host runs before the servers in a cycle
        await self.write(ctx, register("DOORBELL").offset, self.submitted & 0xFFFF)

    async def settle(self, ctx: Any) -> None:
        """Wait until nothing is left to do, or the engine has stopped."""
        while True:
            status = await self.read(ctx, register("STATUS").offset)
            entry = register("STATUS")
            if not entry["BUSY"].extract(status):
                return
            if entry["FAULT"].extract(status) and entry["DRAINED"].extract(status):
                return

    def execute(self, tasks: Sequence[Task], *, gap: int = 12) -> list[int]:
        """Submit all tasks with one doorbell; returns FAULT and RETIRED at the end."""
        found: list[int] = []

        async def host(ctx: Any) -> None:
            for number, task in enumerate(tasks):
                await self.load(ctx, pack(task), number)
            await ctx.tick().repeat(gap)
            await self.ring(ctx, len(tasks))
            await self.settle(ctx)
            found.append(await self.register(ctx, "FAULT"))
            found.append(await self.register(ctx, "RETIRED"))
            self.fault_address = await self.register(ctx, "FAULT_ADDRESS")
            await ctx.tick().repeat(20)

        self.run(host)
        return found

    def check(self, tasks: Sequence[Task]) -> None:
        """Execute tasks and compare all of memory with what they should do."""
        expected = self.memory.data.copy()
        for task in tasks:
            apply(task, expected)
        fault, retired = self.execute(tasks)
        assert (Status(fault & 0xFF), retired) == (Status.OK, len(tasks)), str(tasks)
        wrong = np.flatnonzero(self.memory.data != expected)
        assert not len(wrong), f"{len(wrong)} bytes differ, first at {wrong[0]:#x}: {tasks}"
