"""The engine sums the counts of each run into one UINT32, and searches for the nearest rows."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi import COUNT_OPS, Lane, Mode, Op
from support.commands import logic, random_tests
from support.rtl.bench import (
    ARRAY,
    HALF,
    ROW,
    SMALL,
    A,
    EngineBench,
    Y,
    configuration,
    rows,
    searching,
    sums,
)
from support.rtl.records import Task
from support.rtl.streams import STALLS, Stalls
from support.rtl.walks import OPERAND_MODES, Walk, random_walk
from support.seeds import slow


@pytest.mark.parametrize(
    ("width", "options"),
    [
        (32, {}),
        (64, {}),
        (64, SMALL),
        slow(128, {}),
        *(slow(width, {"read_ports": 1}) for width in (32, 64, 128)),
    ],
)
def test_rows_of_every_length_at_any_byte(
    width: int, options: dict[str, Any], stalls: Stalls
) -> None:
    """The operands are two matrices, row by row, or a matrix and a row that is read repeatedly."""
    generator = random.Random(f"{width} {stalls.seed}")
    beat = width // 8
    config = configuration(data_width=width, **options)
    latency = generator.choice([0, 7])
    tasks = []
    for number, size in enumerate([*range(1, beat + 3), 2 * beat, 3 * beat - 1, 5 * beat + 1]):
        a = rows(generator.randrange(64), size, 3, size + generator.randrange(3))
        b = rows(1024 + generator.randrange(64), size, 3, generator.choice([0, size]))
        op = generator.choice(sorted(COUNT_OPS))
        tests = random_tests(generator, op)
        tasks.append(sums(op, a, b if op.reads_b else None, HALF + 16 * number, **tests))
    for first in range(0, len(tasks), config.slots):
        bench = EngineBench(config, latency, stalls, stalls.seed)
        bench.check(tasks[first : first + config.slots])


def fitting_modes(width: int, lane: Lane) -> list[Mode]:
    """Return the modes of an operand; only dense operands have elements wider than a beat."""
    return [mode for mode in OPERAND_MODES if lane.bits <= width or mode is Mode.DENSE]


@pytest.mark.parametrize(
    ("width", "lane", "a_mode"),
    [
        (slow if width == 128 else pytest.param)(width, lane, mode)
        for width in (32, 64, 128)
        for lane in Lane
        for mode in fitting_modes(width, lane)
    ],
)
def test_operands_that_stride_and_repeat(width: int, lane: Lane, a_mode: Mode) -> None:
    """Runs are summed in every lane that they can have, among commands of other kinds."""
    generator = random.Random(f"{width} {lane} {a_mode}")
    bench = EngineBench(configuration(data_width=width), stalls=STALLS[1], seed=width)
    tasks = []
    for number in range(4):
        b_mode = generator.choice(fitting_modes(width, lane))
        counts = [generator.choice([1, 2, 5, 21]), 2, 2]
        a, b = (
            random_walk(generator, bench.configuration, counts, mode, lane, size=HALF, aligned=True)
            for mode in (a_mode, b_mode)
        )
        y = Walk(HALF + 64 * number, counts, [1, 4, 20], Mode.SUM, Lane.BITS_32)
        tests = random_tests(generator, Op.COUNT_AND) if number else {}
        tasks.append(Task(Op.COUNT_AND, a, b, y, **tests))
        tasks.append(logic(Op.NOT, 3, None, HALF + 1024 * number + 512, 9))
    bench.check(tasks)


def test_a_run_of_ones_comes_to_all_its_bits() -> None:
    """A sum is not limited to the 8 or 16 bits of a count."""
    bench = EngineBench(configuration(), latency=3)
    bench.memory.data[:HALF] = 0xFF
    bench.check([sums(Op.COUNT, rows(0, HALF, 1, 0), None, HALF)])
    assert bench.memory.data[HALF : HALF + 4].view("<u4")[0] == 8 * HALF


@pytest.mark.parametrize("width", [32, 64])
def test_sums_may_go_backwards_and_stand_apart(width: int) -> None:
    bench = EngineBench(configuration(data_width=width))
    backwards = sums(Op.COUNT, rows(0, 9, 5, 9), None, HALF + 400, -4)
    bench.check([backwards, sums(Op.COUNT, rows(5, 33, 4, 0), None, HALF + 1000, 36)])


def test_a_row_a_cycle_where_it_fills_a_beat(width: int) -> None:
    bench = EngineBench(configuration(data_width=width))
    size = width // 8
    bench.check([sums(Op.COUNT_XOR, rows(0, size, 64, size), rows(2048, size, 64, 0), HALF)])
    beats = bench.writes.beats
    assert beats == list(range(beats[0], beats[0] + 64))


# --- searches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [slow(32), 64])
@pytest.mark.parametrize("ports", [slow(1), 2])
def test_searches_among_other_commands(width: int, ports: int, stalls: Stalls) -> None:
    """Each SEARCH is written in order, whatever commands precede and follow it."""
    generator = random.Random(f"{width} {ports} {stalls.seed}")
    circuit = configuration(data_width=width, search=ARRAY, read_ports=ports)
    bench = EngineBench(circuit, generator.choice([0, 7]), stalls, 3)
    bench.memory.data[A : A + 2 * ROW] = bench.memory.data[A + 4 * ROW : A + 6 * ROW]
    tasks = []
    for number in range(4):
        y, count = Y + 256 * number, generator.randint(1, ARRAY.queries)
        tasks.append(searching(generator.choice([1, 2, 3, 7, 40]), count, y))
        tasks.append(logic(Op.XOR, 100, 200, y + 131, generator.choice([1, 9, 100])))
    bench.check(tasks)


def test_what_an_array_can_do_is_in_its_register() -> None:
    words = []
    for search in (ARRAY, None):
        bench = EngineBench(configuration(search=search))

        async def host(ctx: Any, bench: EngineBench = bench) -> None:
            ops = await bench.register(ctx, "CAPABILITIES", "OPS")
            words.append((await bench.register(ctx, "SEARCH"), ops >> Op.SEARCH & 1))

        bench.run(host)
    assert words == [(3 | 4 << 16 | 3 << 20 | 1 << 24, 1), (0, 0)]
