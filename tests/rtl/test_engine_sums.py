"""The engine sums the counts of each run into one UINT32."""

import random
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import COUNT_OPS, Lane, Mode, Op, Port, Status
from support.commands import logic, random_tests
from support.rtl.bench import SIZE, SMALL, EngineBench, configuration
from support.rtl.records import Task, apply
from support.rtl.streams import ALL_STALLS, NO_STALLS, STALLS, Stalls
from support.rtl.walks import OPERAND_MODES, Walk, random_walk
from support.seeds import slow

HALF = SIZE // 2
"""First address of the sums; operands are below it."""


def sums(op: Op, a: Walk, b: Walk | None, y: int, step: int = 4, **tests: bool) -> Task:
    """Return a command that stores each run's sum, ``step`` bytes apart from address ``y`` on."""
    runs = [1] * len(a.counts)
    runs[1:2] = [step] * (len(a.counts) > 1)
    return Task(op, a, b, Walk(y, a.counts, runs, Mode.SUM, Lane.BITS_32), **tests)


def rows(base: int, size: int, number: int, step: int) -> Walk:
    return Walk(base, [size, number], [1, step], Mode.DENSE, Lane.BITS_8)


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
@pytest.mark.parametrize("stalls", ALL_STALLS)
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


@pytest.mark.slow
def test_wide_beats() -> None:
    bench = EngineBench(configuration(data_width=128), compile_it=False)
    bench.check([sums(Op.COUNT_XOR, rows(1, 100, 5, 101), rows(2050, 100, 5, 0), HALF)])


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


@pytest.mark.parametrize("width", [32, 64, slow(128)])
def test_a_row_a_cycle_where_it_fills_a_beat(width: int) -> None:
    bench = EngineBench(configuration(data_width=width))
    size = width // 8
    bench.check([sums(Op.COUNT_XOR, rows(0, size, 64, size), rows(2048, size, 64, 0), HALF)])
    beats = bench.writes.beats
    assert beats == list(range(beats[0], beats[0] + 64))


@pytest.mark.parametrize("width", [32, 64, slow(128)])
@pytest.mark.parametrize("bad", [0, 40, 250, 767])
@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize("stalls", [NO_STALLS, STALLS[1]])
def test_a_row_that_cannot_be_read_is_never_summed(
    width: int, bad: int, which: str, stalls: Stalls
) -> None:
    """Rows before the bad beat have their sums; a bad beat anywhere in a row stops the engine."""
    bench = EngineBench(configuration(data_width=width), stalls=stalls, seed=bad)
    base = {"a": 0, "b": 1024}[which]
    address = (base + bad) & -bench.configuration.data_bytes
    bench.memory.bad = lambda each: each == address
    before = bench.memory.data.copy()
    expected = before.copy()
    task = sums(Op.COUNT_AND, rows(0, 96, 8, 96), rows(1024, 96, 8, 96), HALF)
    apply(task, expected)
    end = bench.execute([task, logic(Op.NOT, 0, None, HALF + 512, 64)])
    assert end == (Status.READ_ERROR, Port.READ_A if which == "a" else Port.READ_B, 0, 0)
    whole = HALF + bad // 96 * 4
    assert np.array_equal(bench.memory.data[HALF:whole], expected[HALF:whole])
    assert np.array_equal(bench.memory.data[whole:], before[whole:])


@pytest.mark.parametrize("width", [32, 64, slow(128)])
def test_a_sum_that_cannot_be_written_stops_the_engine(width: int) -> None:
    bench = EngineBench(configuration(data_width=width))
    bench.memory.bad = lambda address: address == HALF + 16
    task = sums(Op.COUNT, rows(0, 40, 8, 40), None, HALF)
    assert bench.execute([task, task]) == (Status.WRITE_ERROR, Port.WRITE, 0, 0)


@pytest.mark.parametrize("width", [32, 64, slow(128)])
def test_rows_that_leave_the_memory_stop_the_engine(width: int) -> None:
    bench = EngineBench(configuration(data_width=width))
    task = sums(Op.COUNT, rows(SIZE - 256, 64, 4, 64), None, HALF)
    task.overrides = {"COUNT_1": 6}
    before = bench.memory.data.copy()
    expected = before.copy()
    apply(task, expected)
    assert bench.execute([task]) == (Status.PAST_MEMORY, Port.READ_A, 0, 0)
    assert bench.fault_address == SIZE
    assert np.array_equal(bench.memory.data, expected)
