"""Lowering: known layouts and sums take the fewest commands, and others are refused by name."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from operator import attrgetter
from typing import Any

import pytest

from bitlane import BitlaneError
from bitlane.driver import Command, Geometry, encode
from bitlane.errors import LayoutError, NoRunError, RowTooLongError, UnsupportedError
from bitlane.lowering import Options, Streams, View, lower, packed_strides
from bitlane_rtl.abi import BIT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Mode, Op

DENSE, STRIDED, REPEAT, SUM = Mode.DENSE, Mode.STRIDED, Mode.REPEAT, Mode.SUM
TEST, NEGATE = Options.TEST, Options.NEGATE
HOME = {"slots": 16, "memory_base": 0, "memory_last": (1 << 32) - 1}
GEOMETRY = {"data_bytes": 8, "loops": 4, "length_bits": 24, "count_bits": 24} | HOME

Work = tuple[Op, tuple[int, ...], View, View | None, View]


def commands(work: Work, options: Options = Options.NONE, **changes: Any) -> list[Command]:
    """Return the commands of ``work`` on a circuit with these parameters."""
    op, shape, *views = work
    geometry = Geometry(**GEOMETRY | changes)
    streams = Streams(*views)
    return list(lower(op, shape, streams, geometry.abilities, geometry.memory, options))


def packed(shape: Sequence[int], itemsize: int, address: int = 0) -> View:
    return View(address, packed_strides(shape, itemsize=itemsize), itemsize)


def lowered_not(shape: tuple[int, ...], a: View, y: View, **changes: Any) -> list[Command]:
    return commands((Op.NOT, shape, a, None, y), **changes)


# --- known layouts ----------------------------------------------------------------------------

DENSE_ROWS, OTHER_ROWS = View(0x8001, (4, 1), 1), View(0x10000, (4, 1), 1)
GATHERED = {"lane": Lane.BITS_32, "run": 500}
IN_BYTES = {"lane": Lane.BITS_8, "run": 4, "counts": (500,), "a.mode": DENSE, "b.mode": DENSE}
LEAN: dict[str, Any] = {"ops": frozenset({Op.NOT, Op.COUNT}), "lanes": frozenset({Lane.BITS_8})}
WORDS_16: dict[str, Any] = {"lanes": frozenset({Lane.BITS_16})}
Y_SUM, Y_ROWS = View(1 << 20, (0,), 4), View(1 << 20, (4, 0), 4)
APART = View(0, (16,), 8)
SHIFTED = View(0, (200, 4), 4)
FIVE = View(0, (4, 4), 4)


@pytest.mark.parametrize(
    ("work", "circuit", "wanted"),
    [
        # Padded rows are two loops.
        (
            (Op.NOT, (50, 100), View(3, (128, 1), 1), None, View(0x8000, (100, 1), 1)), {},
            {"run": 100, "counts": (50,), "a.jumps": (128,), "y.jumps": (100,), "a.base": 3,
             "a.last": 3 + 128 * 49 + 99},
        ),
        # Four bytes in every 64: a 32-bit element a cycle is gathered.
        (
            (Op.NOT, (500, 4), View(4, (64, 1), 1), None, OTHER_ROWS), {},
            GATHERED | {"counts": (), "a.mode": STRIDED, "a.stride": 64, "y.mode": DENSE},
        ),
        # A row that is broadcast, and a scalar, which is read once.
        (
            (Op.XOR, (100, 512), packed((100, 512), 4), View(0x40000, (0, 4), 4),
             packed((100, 512), 4, 0x80000)), {},
            {"run": 2048, "counts": (100,), "b.jumps": (0,)},
        ),
        (
            (Op.AND, (10, 100), packed((10, 100), 4), View(0x8000, (0, 0), 4),
             packed((10, 100), 4, 64)), {},
            {"run": 1000, "counts": (), "a.mode": DENSE, "b.mode": REPEAT, "y.mode": DENSE},
        ),
        # A transposed input is gathered, and the output written densely.
        (
            (Op.NOT, (64, 64), View(0, (4, 256), 4), None, packed((64, 64), 4, 0x8000)), {},
            {"a.mode": STRIDED, "y.mode": DENSE, "loops": 2},
        ),
        # Elements wider than a beat are not gathered, nor are any without their lane.
        (
            (Op.NOT, (100,), APART, None, View(4096, (8,), 8)), {},
            {"lane": Lane.BITS_64, "run": 100, "a.mode": STRIDED},
        ),
        *(
            (
                (Op.NOT, (100,), APART, None, View(4096, (8,), 8)), circuit,
                {"lane": Lane.BITS_8, "run": 8, "counts": (100,), "a.mode": DENSE},
            )
            for circuit in ({"data_bytes": 4}, LEAN)
        ),
        # Only what is gathered has to be aligned.
        ((Op.NOT, (500, 4), View(1, (4, 1), 1), None, View(0x10000, (64, 1), 1)), {}, GATHERED),
        ((Op.NOT, (500, 4), View(8, (64, 1), 1), None, OTHER_ROWS), {}, GATHERED),
        *(
            ((Op.XOR, (500, 4), *pair, OTHER_ROWS), {}, IN_BYTES)
            for source in (View(1, (64, 1), 1), View(8, (66, 1), 1))
            for pair in ((source, DENSE_ROWS), (DENSE_ROWS, source))
        ),
        # Axes that descend in all tensors are dense; an input that descends alone is gathered.
        (
            (Op.NOT, (1000,), View(0x1F9C, (-4,), 4), None, View(0x8F9C, (-4,), 4)), {},
            {"run": 4000, "loops": 1, "a.base": 0x1000, "y.base": 0x8000},
        ),
        (
            (Op.NOT, (1000,), View(0x1F9C, (-4,), 4), None, View(0x8000, (4,), 4)), {},
            {"a.mode": STRIDED, "a.stride": -4, "y.mode": DENSE, "a.base": 0x1F9C,
             "a.last": 0x1F9F},
        ),
        # A shape without axes is one element.
        (
            (Op.COUNT, (), View(8, (), 8), None, View(64, (), 1)), {},
            {"run": 1, "lane": Lane.BITS_64, "out_lane": Lane.BITS_8},
        ),
        # One row against each of 100, and a byte for each pair of elements.
        (
            (Op.COUNT_XOR, (100, 32), packed((100, 32), 4), View(0x10000, (0, 4), 4),
             packed((100, 32), 1, 0x20000)), {},
            {"lane": Lane.BITS_32, "out_lane": Lane.BITS_8, "run": 32, "counts": (100,),
             "b.jumps": (0,)},
        ),
        # Logic may lie at odd addresses.
        ((Op.XOR, (4,), View(1, (4,), 4), View(67, (4,), 4), View(130, (4,), 4)), {}, {"run": 16}),
        # Sums: rows and one query, queries and rows.
        (
            (Op.COUNT_XOR, (500, 256), View(0, (256, 1), 1), View(1 << 20, (0, 1), 1),
             View(1 << 21, (4, 0), 4)), {},
            {"op": Op.COUNT_XOR, "lane": Lane.BITS_64, "out_lane": Lane.BITS_32, "run": 32,
             "counts": (500,), "a.jumps": (256,), "b.jumps": (0,), "y.jumps": (4,),
             "a.mode": DENSE, "b.mode": DENSE, "y.mode": SUM, "y.base": 1 << 21,
             "y.last": (1 << 21) + 4 * 500 - 1},
        ),
        (
            (Op.COUNT_XOR, (5, 700, 64), View(0, (64, 0, 1), 1), View(1 << 20, (0, 64, 1), 1),
             View(1 << 21, (2800, 4, 0), 4)), {},
            {"run": 8, "counts": (700, 5)},
        ),
        # Rows that descend are as those that ascend, and columns are gathered.
        *(
            (
                (Op.COUNT, (99,), View(0x1000, (step,), 1), None, View(0, (0,), 4)), {},
                {"a.mode": mode, "a.base": 0x1000 + 98 * step},
            )
            for step, mode in ((-1, DENSE), (-2, STRIDED))
        ),
        (
            (Op.COUNT, (300, 7), View(0, (14, 2), 2), None, View(0x4000, (0, 4), 4)), {},
            {"run": 300, "counts": (7,), "a.mode": STRIDED, "a.stride": 14, "lane": Lane.BITS_16},
        ),
        # A constant beside rows is read once a run.
        (
            (Op.COUNT_XOR, (9, 50), SHIFTED, View(0x4000, (0, 0), 4), View(0x5000, (4, 0), 4)), {},
            {"run": 50, "a.mode": DENSE, "b.mode": REPEAT},
        ),
        # A row is never cut: it has as many bytes as a run, whatever its counts would take.
        (
            (Op.COUNT, ((1 << 24) - 1,), View(0, (1,), 1), None, View(1 << 25, (0,), 4)), {},
            {"run": (1 << 24) - 1},
        ),
        (
            (Op.COUNT, (3, 4095), View(0, (4095, 1), 1), None, Y_ROWS), {"length_bits": 12},
            {"run": 4095, "counts": (3,)},
        ),
        ((Op.COUNT, (9,), APART, None, Y_SUM), {}, {"run": 9}),
        # Rows of one element are sums if Y has no stride for them.
        ((Op.COUNT, (9, 1), FIVE, None, View(1024, (4,), 4)), {}, {"y.mode": SUM}),
        ((Op.COUNT, (9, 1), FIVE, None, View(1024, (4, 0), 4)), {}, {"y.mode": DENSE}),
        ((Op.COUNT, (9, 5), FIVE, None, View(1024, (4,), 4)), {}, {"run": 5}),
        # An element without a lane is counted by its parts.
        (
            (Op.COUNT, (9,), View(0, (8,), 8), None, View(1024, (4,), 4)), WORDS_16,
            {"lane": Lane.BITS_16, "run": 4, "y.mode": SUM},
        ),
    ],
)  # fmt: skip
def test_known_layouts_are_one_command(
    work: Work, circuit: dict[str, Any], wanted: dict[str, Any]
) -> None:
    (command,) = commands(work, **circuit)
    assert {name: attrgetter(name)(command) for name in wanted} == wanted


@pytest.mark.parametrize("op", [Op.NOT, Op.XOR, Op.SHIFT_LEFT, Op.COUNT, Op.COUNT_XOR])
@pytest.mark.parametrize("shape", [(4096,), (64, 64), (2, 1, 4, 8, 4, 16), (1, 1)])
def test_contiguous_tensors_are_one_command_of_one_loop(op: Op, shape: tuple[int, ...]) -> None:
    b = packed(shape, 4, 0x10000) if op.reads_b else None
    work = op, shape, packed(shape, 4), b, packed(shape, 4, 0x20000)
    (command,) = commands(work, Options.SATURATE)
    assert command.loops == 1
    assert command.a.mode is command.y.mode is DENSE
    assert command.run * (1 if op in LOGIC_OPS else 4) == 4 * prod(shape)
    assert len(encode(command)) == (8 if op.reads_b else 6)


@pytest.mark.parametrize("shape", [(4096,), (64, 64), (4, 1, 8, 4, 32), (1, 1)])
def test_all_of_a_packed_tensor_is_one_sum(shape: tuple[int, ...]) -> None:
    y = View(1 << 20, (0,) * len(shape), 4)
    (command,) = commands((Op.COUNT, shape, packed(shape, 4, 3), None, y))
    assert command.loops == 1
    assert command.run * command.lane.bytes == 4 * prod(shape)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("options", [TEST, TEST | NEGATE])
def test_a_sum_of_tests_has_the_lane_of_its_elements(size: int, options: Options) -> None:
    a = View(0, (8 * size, size), size)
    (command,) = commands((Op.COUNT, (50, 8), a, None, Y_ROWS), options)
    assert (command.lane, command.run, command.counts) == (Lane(size.bit_length() - 1), 8, (50,))
    assert (command.test, command.negate) == (True, NEGATE in options)
    (whole,) = commands((Op.COUNT, (50, 8), a, None, View(1 << 20, (0, 0), 4)), options)
    assert (whole.run, whole.counts, whole.y.mode) == (400, (), SUM)


def test_a_sum_of_tests_is_of_one_run_in_a_lane_that_is_built() -> None:
    y = View(0x4000, (0, 4), 4)
    (columns,) = commands((Op.COUNT, (300, 7), View(0, (14, 2), 2), None, y), TEST)
    assert (columns.run, columns.a.mode, columns.a.stride) == (300, STRIDED, 14)
    (single,) = commands((Op.COUNT, (9, 1), FIVE, None, View(0x4000, (4,), 4)), TEST)
    assert (single.run, single.counts, single.y.mode) == (1, (9,), SUM)
    (narrow,) = commands((Op.COUNT, (9,), View(0, (8,), 8), None, Y_SUM), TEST, data_bytes=4)
    assert (narrow.run, narrow.lane) == (9, Lane.BITS_64)


def test_eight_axes_that_do_not_merge_take_the_fewest_commands() -> None:
    shape = (2, 3, 2, 5, 2, 7, 2, 9)
    strides, step = [0] * 8, 1
    for axis in reversed(range(8)):
        strides[axis] = step
        step *= 2 * shape[axis]
    got = lowered_not(shape, View(0, tuple(strides), 1), View(step, tuple(strides), 1))
    # The longest three beside the run stay in the circuit: 7, 5 and 3 of 2, 3, 2, 5, 2, 7, 2.
    assert len(got) == 2**4
    assert sorted(got[0].counts) == [3, 5, 7]


@pytest.mark.parametrize("op", sorted(BIT_OPS))
def test_saturation_and_sign_are_of_shifts_alone(op: Op) -> None:
    b = View(64, (1,), 1) if op.reads_b else None
    work = op, (8,), View(0, (1,), 1), b, View(128, (1,), 1)
    (command,) = commands(work, Options.SATURATE | Options.ARITHMETIC)
    assert command.saturate == (op in SHIFT_OPS)
    assert command.arithmetic == (op is Op.SHIFT_RIGHT)


@pytest.mark.parametrize("op", [Op.NOT, Op.COUNT])
@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_a_shape_with_a_zero_needs_no_command(shape: tuple[int, ...], op: Op) -> None:
    y = View(0, (0 if op is Op.COUNT else 1,) * len(shape), 4 if op is Op.COUNT else 1)
    assert commands((op, shape, View(0, (1,) * len(shape), 1), None, y)) == []


@pytest.mark.parametrize("bits", [12, 16, 24])
@pytest.mark.parametrize("difference", [-1, 0, 1])
@pytest.mark.parametrize("op", [Op.NOT, Op.COUNT])
def test_runs_at_the_limit_of_the_length(bits: int, difference: int, op: Op) -> None:
    count = (1 << bits) + difference
    work = op, (count,), View(0, (1,), 1), None, View(1 << 26, (1,), 1)
    got = commands(work, length_bits=bits)
    assert len(got) in ((1,) if difference <= 0 else (1, 2))
    assert covered(got) == [(1 << 26, (1 << 26) + count - 1)]
    assert all(command.run < 1 << bits for command in got)


@pytest.mark.parametrize("count", [(1 << 24) - 1, 1 << 24, (1 << 24) + 1, 3 * (1 << 24) + 17])
def test_loops_longer_than_the_counters_are_cut(count: int) -> None:
    got = lowered_not((count, 3), View(0, (5, 1), 1), View(1 << 31, (5, 1), 1))
    assert len(got) <= 2
    assert sum(command.run * prod(command.counts) for command in got) == 3 * count
    assert all(n < 1 << 24 for command in got for n in command.counts)


@pytest.mark.parametrize("circuit", [{"loops": 1}, {"count_bits": 1}])
def test_a_circuit_without_loops_gets_a_command_for_each_row(circuit: dict[str, Any]) -> None:
    got = lowered_not((7, 100), View(0, (128, 1), 1), View(0x800, (128, 1), 1), **circuit)
    assert [command.a.base for command in got] == [128 * row for row in range(7)]
    assert {command.loops for command in got} == {1}
    assert [command.fence for command in got] == [True, *[False] * 6]


def covered(got: Sequence[Command]) -> list[tuple[int, int]]:
    """Ranges that the outputs of commands fill, neighbours joined."""
    ranges = sorted((command.y.base, command.y.last) for command in got)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    joined = [ranges[0]]
    for first, last in ranges[1:]:
        if first == joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


# --- refusals ---------------------------------------------------------------------------------

W, LONGS = View(0, (4,), 4), View(0, (8,), 8)
B1, B2, B3 = View(0, (1,), 1), View(0, (2,), 2), View(0, (3,), 3)
GAPS = (5, 7, 3), View(0, (200, 16, 1), 1), None, View(1 << 20, (4, 0, 0), 4)
PAIRS = Op.COUNT_XOR, (9, 8), View(0, (8, 1), 1), View(512, (8, 1), 1), View(1024, (4, 0), 4)
FAR, NEAR, TOP = View(1 << 25, (0,), 4), View(64, (4,), 4), View((1 << 32) - 16, (4, 0), 4)
TESTED = {"options": TEST}
NO_32_BITS = "no 32-bit lanes for COUNT; it has 8"
NO_LANE = "no 64-bit lanes for"


def sum_of(op: Op, y: View) -> Work:
    return op, (5, 8), View(0x1000, (8, 1), 1), None, y


@pytest.mark.parametrize(
    ("error", "words", "work", "circuit"),
    [
        (LayoutError, "multiples", (Op.SHIFT_LEFT, (4,), W, NEAR, View(130, (4,), 4)), {}),
        (LayoutError, "multiples", (Op.COUNT, (4,), W, None, View(128, (6,), 4)), {}),
        (LayoutError, "multiples", (Op.COUNT_OR, (4,), W, NEAR, View(130, (4,), 4)), {}),
        (LayoutError, "stride 0", (Op.NOT, (4,), B1, None, View(64, (0,), 1)), {}),
        (LayoutError, "A: strides", (Op.NOT, (1,), View(0, (1, 1), 1), None, B1), {}),
        (LayoutError, "A: itemsize 3", (Op.NOT, (1,), B3, None, B3), {}),
        (LayoutError, "B: itemsize 2", (Op.XOR, (1,), W, B2, W), {}),
        (LayoutError, "B: XOR has two operands", (Op.XOR, (1,), W, None, W), {}),
        (LayoutError, "Y: itemsize 2", (Op.COUNT, (1,), W, None, B2), {}),
        (LayoutError, "B: COUNT_AND has two operands", (Op.COUNT_AND, (1,), W, None, B1), {}),
        (LayoutError, "B: itemsize 2", (Op.COUNT_XOR, (1,), W, B2, B1), {}),
        (LayoutError, "Y: itemsize 2", (Op.COUNT_XOR, (1,), B2, B2, B2), {}),
        (LayoutError, "Y: itemsize 1", (Op.NOT, (1,), W, None, B1), {}),
        (LayoutError, "multiples of it", sum_of(Op.COUNT, View(2, (4, 0), 4)), {}),
        (LayoutError, "multiples of it", sum_of(Op.COUNT, View(0, (6, 0), 4)), {}),
        (LayoutError, "elements of 1 bytes", sum_of(Op.COUNT, View(0, (1, 0), 1)), {}),
        (LayoutError, "must not overlap", sum_of(Op.COPY, View(0, (1, 0), 1)), {}),
        (LayoutError, "outside the device's memory", sum_of(Op.COUNT, TOP), {}),
        (UnsupportedError, "without XOR; it has COUNT, NOT", (Op.XOR, (1,), B1, B1, B1), LEAN),
        (UnsupportedError, "without COUNT_XOR; it has C", (Op.COUNT_XOR, (1,), B1, B1, B1), LEAN),
        (UnsupportedError, NO_32_BITS, (Op.COUNT, (1,), W, None, B1), LEAN),
        (UnsupportedError, "without sums of COUNT_XOR", PAIRS, {"modes": frozenset({DENSE})}),
        (UnsupportedError, "without COUNT_XOR; it has AND", PAIRS, {"ops": frozenset({Op.AND})}),
        (
            UnsupportedError, "no lanes for sums of 7 bytes; it has 16 bits",
            (Op.COUNT, (7,), B1, None, View(64, (0,), 4)), WORDS_16,
        ),
        (UnsupportedError, "no 64-bit lanes", (Op.COUNT, (9,), LONGS, None, B1), WORDS_16),
        (UnsupportedError, NO_LANE, (Op.COUNT, (9,), LONGS, None, NEAR), WORDS_16 | TESTED),
        (UnsupportedError, NO_LANE, (Op.COUNT, (9,), LONGS, None, FAR), WORDS_16 | TESTED),
        (UnsupportedError, "of XOR; expected TEST, of a count", (Op.XOR, (9,), B1, B1, B1), TESTED),
        (
            UnsupportedError, "of COUNT_XOR; expected TEST, of a count",
            (Op.COUNT_XOR, (9,), B1, B1, B1), {"options": NEGATE},
        ),
        (NoRunError, "7 x 3 bytes that are 16, 1 bytes apart", (Op.COUNT, *GAPS), {}),
        (NoRunError, "7 x 3 elements that are 16, 1 b", (Op.COUNT, *GAPS), TESTED),
        *(
            (NoRunError, "apart", (Op.COUNT, (9,), APART, None, Y_SUM), circuit)
            for circuit in (
                {"modes": frozenset({DENSE, SUM})}, {"lanes": frozenset({Lane.BITS_8})},
                {"data_bytes": 4},
            )
        ),
        (
            NoRunError, "9 elements that are 16 bytes apart",
            (Op.COUNT, (9,), APART, None, Y_SUM), {"data_bytes": 4} | TESTED,
        ),
        (
            RowTooLongError, "16777216 bytes a row; expected 16777215",
            (Op.COUNT, (1 << 24,), B1, None, FAR), {},
        ),
        (RowTooLongError, "16777216 bytes a row", (Op.COUNT, (1 << 21,), LONGS, None, FAR), TESTED),
    ],
)  # fmt: skip
def test_what_cannot_be_lowered_is_named(
    error: type[BitlaneError], words: str, work: Work, circuit: dict[str, Any]
) -> None:
    with pytest.raises(error, match=words) as caught:
        commands(work, **circuit)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("a", "y"),
    [
        (View(91, (1,), 1), View(0, (1,), 1)),
        (View(8, (-1,), 1), View(20, (1,), 1)),
        (View(0, (1,), 1), View(91, (1,), 1)),
    ],
)
def test_views_outside_the_memory_are_refused(a: View, y: View) -> None:
    with pytest.raises(LayoutError, match="outside"):
        lowered_not((10,), a, y, memory_last=99)
    assert lowered_not((9,), a, y, memory_last=99)
