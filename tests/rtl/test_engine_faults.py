"""The whole engine: what cannot be finished becomes a code, and CLEAR ends it well."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import COMPLETION_OFFSET, Lane, Mode, Op, Port, Status, register
from support.commands import dense, logic
from support.rtl.bench import (
    ARRAY,
    HALF,
    ROW,
    SIZE,
    SMALL,
    A,
    B,
    EngineBench,
    Y,
    configuration,
    ending,
    on,
    rows,
    searching,
    sums,
)
from support.rtl.records import Task
from support.rtl.streams import NO_STALLS, STALLS, Stalls
from support.rtl.walks import Walk
from support.seeds import slow

VECTORS = logic(Op.XOR, 0, 1024, 4096, 256)
SUMS = sums(Op.COUNT_AND, rows(0, 96, 8, 96), rows(1024, 96, 8, 96))
UNREADABLE = [
    *(
        on({"read_ports": 1} if ports == 1 else {}, VECTORS, base + offset, None, NO_STALLS)
        for base in (0, 1024)
        for offset in (0x0, 0x48, 0xF8)
        for ports in (1, 2)
    ),
    *(
        on({"data_width": width}, SUMS, base + offset, offset // 96 * 4, STALLS[number % 2])
        for base in (0, 1024)
        for number, offset in enumerate((0, 40, 250, 767), base // 1024)
        for width in (32, 64, 128)
    ),
    *(
        on({"data_width": width, "search": ARRAY}, searching(20, 5), bad, 0, STALLS[number // 2])
        for number, bad in enumerate((A, B + ROW, A + 17 * ROW, B + 3 * ROW))
        for width in (32, 64)
    ),
]
"""A circuit, a command, the address of a beat that cannot be read, and the bytes of Y that are
written before, or None if any part may be."""


@pytest.mark.parametrize(("circuit", "task", "bad", "written", "stalls"), UNREADABLE)
def test_what_cannot_be_read_stops_the_engine_until_clear(
    circuit: dict[str, Any], task: Task, bad: int, written: int | None, stalls: Stalls
) -> None:
    """The commands before are complete, those behind do nothing, and no write follows."""
    bench = EngineBench(configuration(**circuit), stalls=stalls, seed=bad)
    beat = bad & -bench.configuration.data_bytes
    port = Port.READ_A if task.b and bad < task.b.base else Port.READ_B
    first = logic(Op.NOT, 2048, None, 7000, 100)
    expected, whole = bench.after(first), bench.after(first, task)

    async def host(ctx: Any) -> None:
        bench.memory.bad = lambda address: address == beat
        await bench.finish(ctx, first, task, first)
        assert await bench.end(ctx) == (Status.READ_ERROR, port, 1, 1)
        if written is None:
            assert await bench.register(ctx, "FAULT_ADDRESS") == bad & -128
        traffic = len(bench.writes.beats)
        await ctx.tick().repeat(200)
        assert len(bench.writes.beats) == traffic, "no write follows a fault"
        found = bench.memory.data.copy()
        changed = np.flatnonzero(found != expected)
        assert np.array_equal(found[changed], whole[changed])
        if written is not None:
            results = slice(task.y.base, task.y.base + written)
            expected[results] = whole[results]
            assert np.array_equal(found, expected)
        bench.memory.bad = lambda address: False
        await bench.clear(ctx)
        await bench.finish(ctx, task)
        assert await bench.end(ctx) == ending(0, 1)

    bench.run(host)
    assert np.array_equal(bench.memory.data, whole)


@pytest.mark.parametrize("wrong", ["read", "write"])
def test_what_later_commands_have_written_after_an_error(wrong: str) -> None:
    """Nothing if it could not be read; if not be written perhaps some bytes, all of them right."""
    bench = EngineBench(configuration(), latency=12)
    tasks = [
        logic(Op.NOT, 1024 * index, None, 4096 + 1024 * index, 64 + 64 * index)
        for index in range(3)
    ]
    bench.memory.bad = lambda address: address == {"read": 0, "write": 4096}[wrong]
    before = bench.memory.data.copy()
    end = bench.execute(tasks)
    assert (end.status, end.index, end.retired) == (Status[f"{wrong.upper()}_ERROR"], 0, 0)
    changed = np.flatnonzero(bench.memory.data != before)
    assert np.array_equal(bench.memory.data[changed], ~before[changed - 4096])
    later = changed[changed >= 4096 + 1024]
    assert bool(later.size) == (wrong == "write")
    assert set(later) < set(range(5120, 5248)) | set(range(6144, 6336)), "else it shows nothing"


@pytest.mark.parametrize("options", [SMALL, slow({"slots": 2})])
def test_clear_leaves_what_belongs_to_no_command(options: dict[str, Any]) -> None:
    bench = EngineBench(configuration(**options))
    kept = ("INTERRUPT", "TIMEOUT", "A_BEATS")
    found: list[list[int]] = []

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "INTERRUPT", 0b01)
        await bench.set(ctx, "TIMEOUT", 5000)
        await bench.finish(ctx, *(logic(Op.NOT, a, None, 4096, 64) for a in (0, SIZE)))
        for _ in range(2):
            words = await bench.registers(ctx, *kept)
            words += [await bench.register(ctx, COMPLETION_OFFSET + 4 * slot) for slot in range(2)]
            found.append(words)
            await bench.set(ctx, "CLEAR", 1)
            await ctx.tick().repeat(4)
        names = ("FAULT", "FAULT_ADDRESS", "DOORBELL", "RETIRED")
        assert await bench.registers(ctx, *names) == [0] * 4
        assert await bench.register(ctx, "STATUS") == register("STATUS").reset
        bench.submitted = 0  # the first slot still holds its record
        await bench.ring(ctx)
        await bench.settle(ctx)
        assert await bench.registers(ctx, "FAULT", "RETIRED") == [0, 1]

    bench.run(host)
    assert found[0] == found[1] == [0b11, 5000, 8, 0, 1 << 8 | Status.PAST_MEMORY]


LEAVING = [
    (Op.NOT, Lane.BITS_8, Lane.BITS_8),
    slow(Op.XOR, Lane.BITS_8, Lane.BITS_8),
    (Op.COUNT, Lane.BITS_64, Lane.BITS_8),
    slow(Op.COUNT, Lane.BITS_64, Lane.BITS_32),
    slow(Op.COUNT, Lane.BITS_8, Lane.BITS_32),
    (Op.COUNT_XOR, Lane.BITS_64, Lane.BITS_8),
    (Op.SHIFT_LEFT, Lane.BITS_64, Lane.BITS_64),
]


@pytest.mark.parametrize("width", [slow(32), 64, slow(128)])
@pytest.mark.parametrize(("op", "lane", "out_lane"), LEAVING)
def test_a_walk_that_leaves_the_memory_ends(width: int, op: Op, lane: Lane, out_lane: Lane) -> None:
    """Whatever a burst that is never asked for would have given: all of a run, or half of one
    element, or what completes no beat."""
    bench = EngineBench(configuration(data_width=width))
    generator = random.Random(f"{width} {op} {lane}")
    streams = "ABY" if op.reads_b else "AY"

    async def host(ctx: Any) -> None:
        for _ in range(24):
            # As many bytes as the output's runs have room for.
            most = 200 // max(out_lane.bytes, lane.bytes // 4)
            elements, leaving = generator.choice([1, 2, 9, most]), generator.choice(streams)
            walks, last = {}, {}
            for place, name in enumerate(streams):
                each = out_lane if name == "Y" else lane
                step = generator.choice([SIZE, -SIZE]) if name == leaving else 256
                base = 2048 * (1 + place) + generator.randrange(0, 64, each.bytes)
                base += generator.randrange(each.bytes) if name == "A" else 0
                walks[name] = Walk(base, [elements, 2], [each.bytes, step], Mode.DENSE, each)
                last[f"{name}_LAST"] = base + elements * each.bytes - 1
            task = Task(op, walks["A"], walks.get("B"), walks["Y"], overrides=last)
            before = bench.memory.data.copy()
            written = list(Walk.bytes(replace(walks["Y"], counts=[elements, 1])))
            await bench.finish(ctx, task)
            assert await bench.end(ctx) == (Status.PAST_MEMORY, Port("ABY".index(leaving)), 0, 0), (
                str(task)
            )
            changed = np.flatnonzero(bench.memory.data != before)
            assert set(changed) <= set(written), str(task)
            await bench.clear(ctx)
            await ctx.tick().repeat(8)

    bench.run(host)


def test_data_may_be_taken_before_their_address() -> None:
    """A subordinate that waits for W before it takes AW is served (AXI4 A3.3.1)."""
    bench = EngineBench(configuration(), stalls=Stalls(seed=3, probability=0.7, longest=9))
    bench.check([logic(Op.NOT, 64 * index, None, 4096 + 64 * index, 64) for index in range(8)])
    asked = {cycle: beats for cycle, _, beats in bench.writes.requests}
    due = [sum(beats for at, beats in asked.items() if at <= cycle) for cycle in bench.writes.beats]
    assert any(number > least for number, least in enumerate(due, start=1))


UNWRITABLE = [
    on({}, logic(Op.NOT, 0, None, HALF, 512), HALF + 0x88),
    *(
        on({"data_width": width}, sums(Op.COUNT, rows(0, 40, 8, 40), None), HALF + 16)
        for width in (32, 64, 128)
    ),
    *(on({"data_width": width, "search": ARRAY}, searching(20, 5), Y + 32) for width in (32, 64)),
]


@pytest.mark.parametrize(("circuit", "task", "bad"), UNWRITABLE)
def test_what_cannot_be_written_stops_the_engine(
    circuit: dict[str, Any], task: Task, bad: int
) -> None:
    bench = EngineBench(configuration(**circuit))
    bench.memory.bad = lambda address: address == bad
    first = logic(Op.NOT, 0, None, 7000, 10)
    assert bench.execute([first, task, first]) == (Status.WRITE_ERROR, Port.WRITE, 1, 1)


ENDS = {"A_LAST": SIZE - 1}
LEAVES = [
    on({}, logic(Op.NOT, SIZE - 256, None, 4096, 400, overrides=ENDS)),
    *(
        on({"data_width": width}, sums(Op.COUNT, rows(SIZE - 256, 64, 6, 64), None, overrides=ENDS))
        for width in (32, 64, 128)
    ),
    *(
        on(
            {"data_width": width, "search": ARRAY},
            searching(4, 2, overrides={"A_BASE": SIZE - 2 * ROW, **ENDS}),
        )
        for width in (32, 64)
    ),
]


@pytest.mark.parametrize(("circuit", "task"), LEAVES)
def test_a_burst_that_would_leave_the_memory_is_named(circuit: dict[str, Any], task: Task) -> None:
    """All rows that can be read are summed; a search finds nothing."""
    bench = EngineBench(configuration(**circuit))
    data = bench.memory.data
    expected = data.copy()
    if task.y.mode is Mode.SUM:
        ones = np.bitwise_count(data[SIZE - 256 :].reshape(4, 64)).sum(axis=1)
        expected[HALF : HALF + 16] = ones.astype("<u4").view(np.uint8)
    assert bench.execute([task]) == (Status.PAST_MEMORY, Port.READ_A, 0, 0)
    assert bench.fault_address == SIZE
    assert task.op is Op.NOT or np.array_equal(data, expected)


@pytest.mark.parametrize("which", ["read_a", "read_b", "writes"])
def test_hung_memory_is_a_fault_and_recovers(which: str) -> None:
    bench = EngineBench(configuration())
    server = getattr(bench, which)
    task = logic(Op.XOR, 0, 1024, 4096, 512)
    port = {"read_a": Port.READ_A, "read_b": Port.READ_B, "writes": Port.WRITE}[which]
    fault = Status.TIMEOUT | port << 8

    async def host(ctx: Any) -> None:
        await bench.set(ctx, "TIMEOUT", 100)
        await bench.submit(ctx, task)
        await ctx.tick().repeat(12)
        server.hang = True
        await ctx.tick().repeat(250)
        status = 0b011  # busy, fault, not drained
        assert await bench.registers(ctx, "STATUS", "FAULT") == [status, fault]
        await bench.clear(ctx)
        await ctx.tick().repeat(50)
        assert await bench.register(ctx, "FAULT") == fault, "CLEAR waits until the bus is legal"
        server.hang = False
        await ctx.tick().repeat(200)
        assert await bench.register(ctx, "FAULT") == 0
        await bench.finish(ctx, task)
        assert await bench.register(ctx, "FAULT") == 0

    bench.run(host)
    data = bench.memory.data
    assert np.array_equal(data[4096:4608], data[:512] ^ data[1024:1536])


DROPPED = [
    *(
        on(circuit, VECTORS, latency, delay)
        for latency, delays in ((5, range(2, 60, 5)), (30, range(1, 14)))
        for delay in delays
        for circuit in ({}, {"data_width": 128})
    ),
    *(on({"search": ARRAY}, searching(30, 8), 2, delay) for delay in (1, 21, 61, 101, 151)),
]
"""A circuit, a command, the latency of the memory, and the cycles from DOORBELL to CLEAR."""


@pytest.mark.parametrize(("circuit", "task", "latency", "delay"), DROPPED)
def test_clear_in_any_cycle_drops_a_command(
    circuit: dict[str, Any], task: Task, latency: int, delay: int
) -> None:
    """No request is dropped or left over, the bus stays legal, and the next commands are right."""
    bench = EngineBench(configuration(**circuit), latency, seed=delay)
    again = logic(Op.NOT, 300, None, 7001, 70)
    dropped, expected = bench.after(task), bench.after(again, task)

    async def host(ctx: Any) -> None:
        await bench.submit(ctx, task, gap=12)
        await ctx.tick().repeat(delay)
        await bench.clear(ctx)
        while await bench.register(ctx, "DOORBELL"):
            pass
        for wait in (100, 1):
            for server in (bench.read_a, bench.read_b, bench.writes):
                assert len(server.beats) == sum(beats for _, _, beats in server.requests)
            assert len(bench.writes.responses) == len(bench.writes.requests)
            await ctx.tick().repeat(wait)
        assert await bench.register(ctx, "STATUS") == register("STATUS").reset
        changed = np.flatnonzero(bench.memory.data != before)
        assert np.array_equal(bench.memory.data[changed], dropped[changed])
        await bench.finish(ctx, again, task)
        assert await bench.end(ctx) == ending(0, 2)

    before = bench.memory.data.copy()
    bench.run(host)
    assert np.array_equal(bench.memory.data, expected)


def test_nothing_retires_in_the_cycle_after_an_error_response() -> None:
    bench = EngineBench(configuration())
    bench.memory.bad = lambda address: address == 4096
    a, y = (Walk(base, [8, 2], [1, 64], Mode.DENSE, Lane.BITS_8) for base in (0, 4096))
    rows = Task(Op.NOT, a, None, y)
    assert bench.execute([rows]) == (Status.WRITE_ERROR, Port.WRITE, 0, 0)
    assert bench.writes.responses[1] == bench.writes.responses[0] + 1, "else it shows nothing"


def test_no_burst_begins_two_cycles_after_an_error_response() -> None:
    bench = EngineBench(configuration(), latency=8)
    bench.memory.bad = lambda address: address == 4096
    y = Walk(4096, [100], [16], Mode.STRIDED, Lane.BITS_16)
    bench.execute([Task(Op.NOT, dense(0, 100, Lane.BITS_16), None, y)])
    # The first cycle after the response has `stop`; what begins then is on the port in the second.
    assert bench.writes.requests[-1][0] == bench.writes.responses[0] + 2


@pytest.mark.parametrize("width", [slow(32), 64])
def test_what_precedes_half_an_element_in_error_is_written(width: int) -> None:
    """However much of it waits for the memory when the error comes."""
    bench = EngineBench(configuration(data_width=width))
    good = logic(Op.NOT, 0, None, 4096, 16 * width // 8)
    walk = Walk(SIZE - 8, [100], [8], Mode.DENSE, Lane.BITS_64)
    last = {"A_LAST": SIZE - 1}
    b, y = replace(walk, base=1024), replace(walk, base=5120)
    bad = Task(Op.SHIFT_LEFT, walk, b, y, overrides=last)
    expected = bench.after(good)

    async def host(ctx: Any) -> None:
        await bench.submit(ctx, good, bad)
        bench.writes.hang = True
        await ctx.tick().repeat(600)
        bench.writes.hang = False
        await bench.settle(ctx)
        end = await bench.end(ctx)
        assert (end.status, end.index, end.retired) == (Status.PAST_MEMORY, 1, 1)

    bench.run(host)
    assert np.array_equal(bench.memory.data[:5120], expected[:5120])
