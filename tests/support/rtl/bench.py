"""An engine with a memory on its native ports and a host on its control port, for tests.

The host is one for any circuit with registers.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane_rtl.abi import (
    RECORD_WORDS,
    REGISTERS,
    RING_OFFSET,
    Lane,
    Mode,
    Op,
    Port,
    Status,
    register,
)
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.engine import Engine
from support.rtl.memory import Memory, ReadServer, WriteServer
from support.rtl.records import Task, apply, pack
from support.rtl.streams import NO_STALLS, Stalls, compiled, simulate
from support.rtl.walks import Walk

Record = Task | Sequence[int]
"""A command, or the words of a record."""

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


HALF = SIZE // 2
"""First address of the results of `sums`; operands are below it."""

ARRAY = Search(units=3, row_bits=128, queries=8, nearest=2)
ROW = ARRAY.row_bits // 8
"""Bytes of a row of the array."""
A, B, Y = 5, 4099, 6144
"""Addresses of the rows and queries of `searching`, at odd bytes, and of its entries."""


def sums(op: Op, a: Walk, b: Walk | None, y: int = HALF, step: int = 4, **tests: bool) -> Task:
    """Return a command that stores each run's sum, ``step`` bytes apart from address ``y`` on."""
    runs = [1] * len(a.counts)
    runs[1:2] = [step] * (len(a.counts) > 1)
    return Task(op, a, b, Walk(y, a.counts, runs, Mode.SUM, Lane.BITS_32), **tests)


def rows(base: int, size: int, number: int, step: int) -> Walk:
    """Return ``number`` runs of ``size`` bytes that begin ``step`` bytes apart."""
    return Walk(base, [size, number], [1, step], Mode.DENSE, Lane.BITS_8)


def searching(number: int, queries: int, y: int = Y, **options: Any) -> Task:
    """Return a SEARCH of `ARRAY` for the rows nearest to each query."""
    entries = Walk(y, [queries * ARRAY.nearest * 2], [4], Mode.DENSE, Lane.BITS_32)
    a, b = (
        Walk(base, [size * ROW], [1], Mode.DENSE, Lane.BITS_8)
        for base, size in ((A, number), (B, queries))
    )
    return Task(Op.SEARCH, a, b, entries, **options)


def on(circuit: dict[str, Any], *given: Any, name: str | None = None) -> Any:
    """Return parameters of a test, ``circuit`` first; the quick tier has few circuits: `SMALL`."""
    width, others = circuit.get("data_width", 64), circuit.keys() - {"data_width"}
    searches = width == 64 and others == {"search"}
    quick = circuit is SMALL or searches or (width < 128 and not others)
    built = (f"{key} {x}" if isinstance(x, int) else key for key, x in circuit.items())
    told = [each.op.name if isinstance(each, Task) else str(each) for each in given]
    name = name or ", ".join([*built, *told])
    return pytest.param(circuit, *given, id=name, marks=[] if quick else [pytest.mark.slow])


def configuration(**options: Any) -> Configuration:
    return Configuration(memory_bytes=SIZE, **options)


class Ending(NamedTuple):
    """FAULT, taken apart, and RETIRED."""

    status: Status
    port: Port
    index: int
    retired: int


def ending(fault: int, retired: int) -> Ending:
    return Ending(Status(fault & 0xFF), Port(fault >> 8 & 3), fault >> 16, retired)


class EngineBench:
    """An engine on ``memory_bytes`` of random memory, prepared once for each configuration."""

    def __init__(
        self,
        configuration: Configuration,
        latency: int = 0,
        stalls: Stalls = NO_STALLS,
        seed: int = 0,
    ) -> None:
        self.configuration = configuration
        self.dut = compiled(Engine, configuration)
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

    async def set(self, ctx: Any, where: str | int, value: int) -> None:
        """Write a register, or the word at an offset of the window."""
        await Host(ctx, self.dut).write(where, value)

    async def register(self, ctx: Any, where: str | int, field: str = "") -> int:
        """Read a register or a field of it, or the word at an offset of the window."""
        word = await Host(ctx, self.dut).read(where)
        return register(str(where))[field].extract(word) if field else word

    async def registers(self, ctx: Any, *names: str) -> list[int]:
        return [await self.register(ctx, name) for name in names]

    async def end(self, ctx: Any) -> Ending:
        """Return how the commands have ended so far."""
        return ending(*await self.registers(ctx, "FAULT", "RETIRED"))

    async def clear(self, ctx: Any) -> None:
        """Write CLEAR, after which the first record is that of slot 0."""
        await self.set(ctx, "CLEAR", 1)
        self.submitted = 0

    async def load(self, ctx: Any, record: Record, ahead: int = 0) -> None:
        """Write a record into the ring without submitting it."""
        slot = (self.submitted + ahead) % self.configuration.slots
        for number, word in enumerate(pack(record) if isinstance(record, Task) else record):
            await self.set(ctx, RING_OFFSET + 4 * (slot * RECORD_WORDS + number), word)

    async def ring(self, ctx: Any, count: int = 1) -> None:
        """Submit ``count`` records that were loaded."""
        self.submitted += count
        self.doorbells.append(self.cycle + 1)  # the host runs before the servers in a cycle
        await self.set(ctx, "DOORBELL", self.submitted & 0xFFFF)

    async def submit(self, ctx: Any, *records: Record, gap: int = 0) -> None:
        """Load ``records``, and submit them with one doorbell after ``gap`` cycles."""
        for number, record in enumerate(records):
            await self.load(ctx, record, number)
        for _ in range(gap):
            await ctx.tick()
        await self.ring(ctx, len(records))

    async def finish(self, ctx: Any, *records: Record, gap: int = 0) -> None:
        """Submit ``records`` and `settle`."""
        await self.submit(ctx, *records, gap=gap)
        await self.settle(ctx)

    async def settle(self, ctx: Any) -> None:
        """Wait until nothing is left to do, or the engine has stopped."""
        entry = register("STATUS")
        stopped = entry["FAULT"].insert(1) | entry["DRAINED"].insert(1)
        busy = True
        while busy:
            status = await self.register(ctx, "STATUS")
            busy = entry["BUSY"].extract(status) and status & stopped != stopped

    def execute(self, tasks: Sequence[Task], *, gap: int = 12) -> Ending:
        """Submit all tasks with one doorbell; return how they ended."""
        found: list[int] = []

        async def host(ctx: Any) -> None:
            await self.finish(ctx, *tasks, gap=gap)
            found.extend(await self.registers(ctx, "FAULT", "RETIRED", "FAULT_ADDRESS"))
            await ctx.tick().repeat(20)

        self.run(host)
        fault, retired, self.fault_address = found
        return ending(fault, retired)

    def after(self, *tasks: Task) -> NDArray[np.uint8]:
        """Return the memory that ``tasks`` should leave."""
        expected = self.memory.data.copy()
        for task in tasks:
            apply(task, expected, search=self.configuration.search)
        return expected

    def check(self, tasks: Sequence[Task]) -> None:
        """Execute tasks and compare all of memory with what they should do."""
        expected = self.after(*tasks)
        assert self.execute(tasks) == ending(0, len(tasks)), str(tasks)
        wrong = np.flatnonzero(self.memory.data != expected)
        assert not len(wrong), f"{len(wrong)} bytes differ, first at {wrong[0]:#x}: {tasks}"


_OFFSETS = {entry.name: entry.offset for entry in REGISTERS}


@dataclass
class Host:
    """A host that accesses registers by name, or the control port by offset.

    ``get`` and ``set`` access the circuit's other ports.
    """

    ctx: Any
    dut: Any
    port: str = "control"
    offsets: Mapping[str, int] = field(default_factory=lambda: _OFFSETS)

    def get(self, port: str) -> int:
        return int(self.ctx.get(attrgetter(port)(self.dut)))

    def set(self, **values: Any) -> None:
        for port, value in values.items():
            self.ctx.set(getattr(self.dut, port), value)

    def access(self, where: str | int = 0x3FFC, **values: int) -> None:
        """Set the ports of the control window."""
        address = self.offsets[where] if isinstance(where, str) else where
        for port, value in {"address": address, **values}.items():
            self.ctx.set(attrgetter(f"{self.port}.{port}")(self.dut), value)

    async def tick(self, cycles: int = 1) -> None:
        await self.ctx.tick().repeat(cycles)

    async def pulse(self, port: str, cycles: int = 1) -> None:
        self.set(**{port: 1})
        await self.tick(cycles)
        self.set(**{port: 0})

    async def write(self, where: str | int, word: int) -> None:
        self.access(where, write_data=word, write=1)
        await self.tick()
        self.access(write_data=~word & 0xFFFF_FFFF, write=0)

    async def read(self, where: str | int) -> int:
        self.access(where, read=1)
        await self.tick()
        self.access(read=0)
        return self.get(f"{self.port}.read_data")

    async def fields(self, name: str) -> dict[str, int]:
        word = await self.read(name)
        return {bits.name: bits.extract(word) for bits in register(name).bits}
