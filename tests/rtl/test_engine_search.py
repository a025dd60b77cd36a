"""The engine with a search array: SEARCH among other commands, its faults and refusals."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import Lane, Mode, Op, Port, Status
from bitlane_rtl.configuration import Configuration, Search
from support.commands import dense, logic
from support.oracle import nearest
from support.rtl.bench import SIZE, EngineBench, configuration, ending
from support.rtl.records import Task, apply
from support.rtl.streams import ALL_STALLS, NO_STALLS, STALLS, Stalls
from support.rtl.walks import Walk
from support.seeds import slow

ROW = 16
ARRAY = Search(units=3, row_bits=8 * ROW, queries=8, nearest=2)
A, B, Y = 5, 4099, 6144
"""Addresses of rows and queries, at odd bytes, and of entries."""


def engine(width: int, **options: Any) -> Configuration:
    return configuration(data_width=width, search=ARRAY, **options)


def search(rows: int, queries: int, y: int = Y, **options: Any) -> Task:
    """Return a SEARCH for the rows nearest to each query."""
    words = queries * ARRAY.nearest * 2
    entries = Walk(y, [words], [4], Mode.DENSE, Lane.BITS_32)
    return Task(Op.SEARCH, dense(A, rows * ROW), dense(B, queries * ROW), entries, **options)


def found(bench: EngineBench, rows: int, queries: int) -> Any:
    """Return the expected bytes of the entries."""
    data = bench.memory.data
    database = data[A : A + rows * ROW].reshape(-1, ROW)
    batch = data[B : B + queries * ROW].reshape(-1, ROW)
    return np.array(nearest(database, batch, ARRAY.nearest), "<u4").reshape(-1).view(np.uint8)


def expect_found(bench: EngineBench, rows: int, queries: int) -> None:
    entries = found(bench, rows, queries)
    assert np.array_equal(bench.memory.data[Y : Y + entries.size], entries)


@pytest.mark.parametrize("width", [slow(32), 64])
@pytest.mark.parametrize("ports", [slow(1), 2])
@pytest.mark.parametrize("stalls", ALL_STALLS)
def test_searches_among_other_commands(width: int, ports: int, stalls: Stalls) -> None:
    """Each SEARCH is written in order, whatever commands precede and follow it."""
    generator = random.Random(f"{width} {ports} {stalls.seed}")
    bench = EngineBench(engine(width, read_ports=ports), generator.choice([0, 7]), stalls, 3)
    bench.memory.data[A : A + 2 * ROW] = bench.memory.data[A + 4 * ROW : A + 6 * ROW]
    expected = bench.memory.data.copy()
    tasks = []
    for number in range(4):
        rows, queries = generator.choice([1, 2, 3, 7, 40]), generator.randint(1, ARRAY.queries)
        y = Y + 256 * number
        tasks.append(search(rows, queries, y))
        entries = found(bench, rows, queries)
        expected[y : y + entries.size] = entries
        other = logic(Op.XOR, 100, 200, y + 131, generator.choice([1, 9, 100]))
        tasks.append(other)
        apply(other, expected)
    assert bench.execute(tasks) == ending(0, len(tasks))
    wrong = np.flatnonzero(bench.memory.data != expected)
    assert not wrong.size, f"first at {wrong[0]:#x}, {stalls}"


def test_a_search_ignores_what_matters_to_shifts_alone() -> None:
    bench = EngineBench(engine(64))
    given = search(9, 3, overrides={"SATURATE": 1, "ARITHMETIC": 1})
    assert bench.execute([given]) == ending(0, 1)
    expect_found(bench, 9, 3)


@pytest.mark.parametrize("width", [slow(32), 64])
@pytest.mark.parametrize("bad", [A, A + 17 * ROW, B + ROW, B + 3 * ROW])
@pytest.mark.parametrize("stalls", [NO_STALLS, STALLS[1]])
def test_nothing_is_found_of_what_cannot_be_read(width: int, bad: int, stalls: Stalls) -> None:
    """Commands before the failed search complete; after CLEAR the array searches again."""
    bench = EngineBench(engine(width), stalls=stalls, seed=bad)
    beat = bad & -bench.configuration.data_bytes
    task, before = search(20, 5), logic(Op.NOT, 6000, None, 7000, 40)
    expected = bench.memory.data.copy()
    apply(before, expected)
    port = Port.READ_A if bad < B else Port.READ_B

    async def host(ctx: Any) -> None:
        bench.memory.bad = lambda address: address == beat
        await bench.finish(ctx, before, task, before)
        fault = Status.READ_ERROR | port << 8 | 1 << 16
        assert await bench.registers(ctx, "FAULT", "RETIRED") == [fault, 1]
        await ctx.tick().repeat(100)
        assert np.array_equal(bench.memory.data, expected)
        bench.memory.bad = lambda address: False
        await bench.clear(ctx)
        await bench.finish(ctx, task)
        assert await bench.register(ctx, "FAULT") == 0

    bench.run(host)
    expect_found(bench, 20, 5)


@pytest.mark.parametrize("after", [0, 20, 60, 100, 150])
def test_clear_in_the_middle_of_a_search_lets_another_be_right(after: int) -> None:
    bench = EngineBench(engine(64), latency=2)
    task = search(30, 8)

    async def host(ctx: Any) -> None:
        await bench.submit(ctx, task)
        await ctx.tick().repeat(after + 1)
        await bench.set(ctx, "CLEAR", 1)
        while await bench.register(ctx, "DOORBELL"):
            pass
        bench.submitted = 0
        await bench.finish(ctx, task)
        assert await bench.register(ctx, "RETIRED") == 1

    bench.run(host)
    expect_found(bench, 30, 8)


@pytest.mark.parametrize("width", [slow(32), 64])
def test_entries_that_cannot_be_written_stop_the_engine(width: int) -> None:
    bench = EngineBench(engine(width))
    bench.memory.bad = lambda address: address == Y + 32
    assert bench.execute([search(20, 5)]) == (Status.WRITE_ERROR, Port.WRITE, 0, 0)


@pytest.mark.parametrize("width", [slow(32), 64])
def test_rows_that_leave_the_memory_stop_the_engine(width: int) -> None:
    bench = EngineBench(engine(width))
    before = bench.memory.data.copy()
    task = search(4, 2, overrides={"A_BASE": SIZE - 2 * ROW, "A_LAST": SIZE - 1})
    assert bench.execute([task]) == (Status.PAST_MEMORY, Port.READ_A, 0, 0)
    assert np.array_equal(bench.memory.data, before)


REFUSED = [
    (Status.BAD_LANE, {"LANE": 1}),
    (Status.BAD_LANE, {"OUT_LANE": 0}),
    (Status.BAD_CONTROL, {"LOOPS": 2, "COUNT_1": 1}),
    (Status.BAD_CONTROL, {"A_MODE": Mode.REPEAT}),
    (Status.BAD_CONTROL, {"Y_MODE": Mode.SUM}),
    (Status.BAD_SIZE, {"RUN": 4 * ROW + 8}),
    (Status.BAD_SIZE, {"RUN": 0}),
    (Status.BAD_SIZE, {"B_LAST": B + 2 * ROW}),
    (Status.BAD_SIZE, {"B_LAST": B - 1}),
    (Status.BAD_SIZE, {"B_LAST": B - 1, "Y_LAST": Y - 1}),
    (Status.BAD_SIZE, {"B_LAST": B + 9 * ROW - 1, "Y_LAST": Y + 9 * 16 - 1}),
    (Status.BAD_SIZE, {"Y_LAST": Y + 2 * 16 + 7}),
    (Status.MISALIGNED, {"Y_BASE": Y + 4, "Y_LAST": Y + 2 * 16 + 3}),
    (Status.PAST_MEMORY, {"A_LAST": SIZE}),
]


@pytest.mark.parametrize("width", [slow(32), 64])
@pytest.mark.parametrize(("status", "overrides"), REFUSED)
def test_a_search_is_refused(width: int, status: Status, overrides: dict[str, int]) -> None:
    """A refused SEARCH causes no traffic on the bus."""
    bench = EngineBench(engine(width))
    before = bench.memory.data.copy()
    task = search(4, 2, overrides=overrides)
    assert bench.execute([task]) == (status, Port.NONE, 0, 0)
    assert np.array_equal(bench.memory.data, before)
    assert not bench.read_a.requests


def test_what_an_array_can_do_is_in_its_register() -> None:
    words = []
    for each in (engine(64), replace(engine(64), search=None)):
        bench = EngineBench(each)

        async def host(ctx: Any, bench: EngineBench = bench) -> None:
            ops = await bench.register(ctx, "CAPABILITIES", "OPS")
            words.append((await bench.register(ctx, "SEARCH"), ops >> Op.SEARCH & 1))

        bench.run(host)
    assert words == [(3 | 4 << 16 | 3 << 20 | 1 << 24, 1), (0, 0)]
