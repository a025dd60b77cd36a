"""Lowering: known layouts take the fewest commands, and what cannot be lowered is refused."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import pytest

from bitlane.driver.commands import Command, encode
from bitlane.driver.geometry import Geometry
from bitlane.errors import LayoutError, UnsupportedError
from bitlane.lowering.lower import lower
from bitlane.lowering.routes import Options
from bitlane.lowering.strided import Streams, View
from bitlane_rtl.abi import BIT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Mode, Op


def commands(
    op: Op, shape: Sequence[int], a: View, b: View | None, y: View, geometry: Geometry | None = None
) -> list[Command]:
    has, streams = geometry or geometry_of(), Streams(a, b, y)
    return list(lower(op, tuple(shape), streams, has.abilities, has.memory, Options.SATURATE))


def packed(shape: Sequence[int], itemsize: int, address: int = 0) -> View:
    strides = tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return View(address, strides, itemsize)


def geometry_of(**changes: Any) -> Geometry:
    return Geometry(
        **{
            "data_bytes": 8,
            "loops": 4,
            "slots": 16,
            "length_bits": 24,
            "count_bits": 24,
            "memory_base": 0,
            "memory_last": (1 << 32) - 1,
        }
        | changes
    )


# --- known layouts ----------------------------------------------------------------------------


@pytest.mark.parametrize("op", [Op.NOT, Op.XOR, Op.SHIFT_LEFT, Op.COUNT, Op.COUNT_XOR])
@pytest.mark.parametrize("shape", [(4096,), (64, 64), (2, 1, 4, 8, 4, 16), (1, 1)])
def test_contiguous_tensors_are_one_command_of_one_loop(op: Op, shape: tuple[int, ...]) -> None:
    b = packed(shape, 4, 0x10000) if op.reads_b else None
    (command,) = commands(op, shape, packed(shape, 4), b, packed(shape, 4, 0x20000))
    assert command.loops == 1
    assert command.a.mode is command.y.mode is Mode.DENSE
    unit = 1 if op in LOGIC_OPS else 4
    assert command.run * unit == 4 * prod(shape)
    assert len(encode(command)) == (8 if op.reads_b else 6)


def lowered_not(shape: Sequence[int], a: View, y: View, **changes: Any) -> list[Command]:
    return commands(Op.NOT, shape, a, None, y, geometry_of(**changes))


def test_padded_rows_are_one_command_of_two_loops() -> None:
    (command,) = lowered_not((50, 100), View(3, (128, 1), 1), View(0x8000, (100, 1), 1))
    assert (command.run, command.counts) == (100, (50,))
    assert (command.a.jumps, command.y.jumps) == ((128,), (100,))
    assert (command.a.base, command.a.last) == (3, 3 + 128 * 49 + 99)


def test_rows_of_one_narrow_element_are_gathered() -> None:
    # Four bytes in every 64: one command that gathers a 32-bit element a cycle.
    (command,) = lowered_not((500, 4), View(4, (64, 1), 1), View(0x10000, (4, 1), 1))
    assert (command.lane, command.run, command.counts) == (Lane.BITS_32, 500, ())
    assert (command.a.mode, command.a.stride, command.y.mode) == (Mode.STRIDED, 64, Mode.DENSE)


def test_a_row_that_is_broadcast_costs_one_command() -> None:
    shape = (100, 512)
    (command,) = commands(
        Op.XOR, shape, packed(shape, 4), View(0x40000, (0, 4), 4), packed(shape, 4, 0x80000)
    )
    assert (command.run, command.counts) == (2048, (100,))
    assert command.b is not None
    assert command.b.jumps == (0,)


def test_a_scalar_is_read_once_and_repeated() -> None:
    (command,) = commands(
        Op.AND, (10, 100), packed((10, 100), 4), View(0x8000, (0, 0), 4), packed((10, 100), 4, 64)
    )
    assert command.b is not None
    assert (command.run, command.counts) == (1000, ())
    assert (command.a.mode, command.b.mode, command.y.mode) == (Mode.DENSE, Mode.REPEAT, Mode.DENSE)


def test_a_transposed_input_is_gathered_and_the_output_written_densely() -> None:
    (command,) = lowered_not((64, 64), View(0, (4, 256), 4), packed((64, 64), 4, 0x8000))
    assert command.a.mode is Mode.STRIDED
    assert command.y.mode is Mode.DENSE
    assert command.loops == 2


def test_elements_wider_than_a_beat_are_not_gathered() -> None:
    work = (Op.NOT, (100,), View(0, (16,), 8), None, View(4096, (8,), 8))
    (wide,) = commands(*work, geometry_of(data_bytes=8))
    assert (wide.lane, wide.run, wide.a.mode) == (Lane.BITS_64, 100, Mode.STRIDED)
    (narrow,) = commands(*work, geometry_of(data_bytes=4))
    assert (narrow.lane, narrow.run, narrow.counts) == (Lane.BITS_8, 8, (100,))
    assert narrow.a.mode is Mode.DENSE


def test_only_what_is_gathered_has_to_be_aligned() -> None:
    aligned, odd, packed_rows = (64, 1), (66, 1), (4, 1)
    for a, y in (((1, packed_rows), (0x10000, aligned)), ((8, aligned), (0x10000, packed_rows))):
        (command,) = lowered_not((500, 4), View(*a, 1), View(*y, 1))
        assert (command.lane, command.run) == (Lane.BITS_32, 500)
    target = View(0x10000, packed_rows, 1)
    for source in (View(1, aligned, 1), View(8, odd, 1)):
        dense = View(0x8001, packed_rows, 1)
        for a, b in ((source, dense), (dense, source)):
            (command,) = commands(Op.XOR, (500, 4), a, b, target)
            assert command.b is not None
            assert (command.lane, command.run, command.counts) == (Lane.BITS_8, 4, (500,))
            assert command.a.mode is command.b.mode is Mode.DENSE


def test_axes_that_descend_in_all_tensors_are_dense() -> None:
    view = View(0x1000 + 4 * 999, (-4,), 4)
    (command,) = lowered_not((1000,), view, View(0x8000 + 4 * 999, (-4,), 4))
    assert (command.run, command.loops) == (4000, 1)
    assert (command.a.base, command.y.base) == (0x1000, 0x8000)


def test_an_input_that_descends_alone_is_gathered() -> None:
    (command,) = lowered_not((1000,), View(0x1F9C, (-4,), 4), View(0x8000, (4,), 4))
    assert (command.a.mode, command.a.stride, command.y.mode) == (Mode.STRIDED, -4, Mode.DENSE)
    assert (command.a.base, command.a.last) == (0x1F9C, 0x1F9F)


def test_eight_axes_that_do_not_merge_take_the_fewest_commands() -> None:
    shape = (2, 3, 2, 5, 2, 7, 2, 9)
    strides, step = [0] * 8, 1
    for axis in reversed(range(8)):
        strides[axis] = step
        step *= 2 * shape[axis]
    view = View(0, tuple(strides), 1)
    got = lowered_not(shape, view, View(step, tuple(strides), 1))
    # The longest three beside the run stay in the circuit: 7, 5 and 3 of 2, 3, 2, 5, 2, 7, 2.
    assert len(got) == 2**4
    assert sorted(got[0].counts) == [3, 5, 7]


def test_only_the_first_command_of_several_has_a_fence() -> None:
    geometry = geometry_of(loops=1)
    got = commands(Op.NOT, (3, 100), View(0, (128, 1), 1), None, View(0x800, (128, 1), 1), geometry)
    assert [command.fence for command in got] == [True, False, False]


@pytest.mark.parametrize("op", sorted(BIT_OPS))
def test_saturation_and_sign_are_of_shifts_alone(op: Op) -> None:
    b = View(64, (1,), 1) if op.reads_b else None
    streams = Streams(View(0, (1,), 1), b, View(128, (1,), 1))
    options = Options.SATURATE | Options.ARITHMETIC
    (command,) = lower(op, (8,), streams, geometry_of().abilities, None, options)
    assert command.saturate == (op in SHIFT_OPS)
    assert command.arithmetic == (op is Op.SHIFT_RIGHT)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_a_shape_with_a_zero_needs_no_command(shape: tuple[int, ...]) -> None:
    view = View(0, (1,) * len(shape), 1)
    assert lowered_not(shape, view, view) == []


def test_a_shape_without_axes_is_one_element() -> None:
    (command,) = commands(Op.COUNT, (), View(8, (), 8), None, View(64, (), 1))
    assert (command.run, command.lane, command.out_lane) == (1, Lane.BITS_64, Lane.BITS_8)


def test_bits_that_differ_are_counted_in_one_command() -> None:
    # One row against each of 100, and a byte for each pair of elements.
    whole, row = packed((100, 32), 4), View(0x10000, (0, 4), 4)
    (command,) = commands(Op.COUNT_XOR, (100, 32), whole, row, packed((100, 32), 1, 0x20000))
    assert (command.lane, command.out_lane) == (Lane.BITS_32, Lane.BITS_8)
    assert (command.run, command.counts) == (32, (100,))
    assert command.b is not None
    assert command.b.jumps == (0,)


@pytest.mark.parametrize("bits", [12, 16, 24])
@pytest.mark.parametrize("difference", [-1, 0, 1])
@pytest.mark.parametrize("op", [Op.NOT, Op.COUNT])
def test_runs_at_the_limit_of_the_length(bits: int, difference: int, op: Op) -> None:
    count = (1 << bits) + difference
    got = commands(
        op, (count,), View(0, (1,), 1), None, View(1 << 26, (1,), 1), geometry_of(length_bits=bits)
    )
    assert len(got) == (1 if difference <= 0 else len(got))
    assert len(got) <= 2
    assert covered(got) == [(1 << 26, (1 << 26) + count - 1)]
    assert all(command.run < 1 << bits for command in got)


@pytest.mark.parametrize("count", [(1 << 24) - 1, 1 << 24, (1 << 24) + 1, 3 * (1 << 24) + 17])
def test_loops_longer_than_the_counters_are_cut(count: int) -> None:
    got = lowered_not((count, 3), View(0, (5, 1), 1), View(1 << 31, (5, 1), 1))
    assert len(got) <= 2
    assert sum(command.run * prod(command.counts) for command in got) == 3 * count
    assert all(n < 1 << 24 for command in got for n in command.counts)


def test_a_circuit_without_loops_gets_a_command_for_each_row() -> None:
    for geometry in (geometry_of(loops=1), geometry_of(count_bits=1)):
        got = commands(
            Op.NOT, (7, 100), View(0, (128, 1), 1), None, View(0x800, (128, 1), 1), geometry
        )
        assert [command.a.base for command in got] == [128 * row for row in range(7)]
        assert {command.loops for command in got} == {1}


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


def test_a_shift_to_an_odd_address_is_refused() -> None:
    with pytest.raises(LayoutError, match="multiples"):
        commands(Op.SHIFT_LEFT, (4,), View(0, (4,), 4), View(64, (4,), 4), View(130, (4,), 4))
    with pytest.raises(LayoutError, match="multiples"):
        commands(Op.COUNT, (4,), View(0, (4,), 4), None, View(128, (6,), 4))
    with pytest.raises(LayoutError, match="multiples"):
        commands(Op.COUNT_OR, (4,), View(0, (4,), 4), View(64, (4,), 4), View(130, (4,), 4))


def test_logic_at_odd_addresses_is_not() -> None:
    (command,) = commands(Op.XOR, (4,), View(1, (4,), 4), View(67, (4,), 4), View(130, (4,), 4))
    assert command.run == 16


def test_an_output_that_repeats_is_refused() -> None:
    with pytest.raises(LayoutError, match="stride 0"):
        lowered_not((4,), View(0, (1,), 1), View(64, (0,), 1))


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
        commands(Op.NOT, (10,), a, None, y, geometry_of(memory_last=99))
    assert commands(Op.NOT, (9,), a, None, y, geometry_of(memory_last=99))


def test_operations_and_lanes_that_the_device_lacks_are_refused() -> None:
    lean = geometry_of(ops=frozenset({Op.NOT, Op.COUNT}), lanes=frozenset({Lane.BITS_8}))
    with pytest.raises(UnsupportedError, match="without XOR; it has COUNT, NOT"):
        commands(Op.XOR, (1,), View(0, (1,), 1), View(0, (1,), 1), View(0, (1,), 1), lean)
    with pytest.raises(UnsupportedError, match="without COUNT_XOR; it has COUNT, NOT"):
        commands(Op.COUNT_XOR, (1,), View(0, (1,), 1), View(0, (1,), 1), View(0, (1,), 1), lean)
    with pytest.raises(UnsupportedError, match="no 32-bit lanes for COUNT; it has 8"):
        commands(Op.COUNT, (1,), View(0, (4,), 4), None, View(0, (1,), 1), lean)
    # Logic does not depend on lanes: wide elements that are apart become runs of bytes.
    got = commands(Op.NOT, (9,), View(0, (16,), 8), None, View(256, (8,), 8), lean)
    assert [(x.lane, x.run, x.counts) for x in got] == [(Lane.BITS_8, 8, (9,))]


@pytest.mark.parametrize(
    ("op", "a", "b", "y", "message"),
    [
        (Op.NOT, View(0, (1, 1), 1), None, View(0, (1,), 1), "A: strides"),
        (Op.NOT, View(0, (3,), 3), None, View(0, (3,), 3), "A: itemsize 3"),
        (Op.XOR, View(0, (4,), 4), View(0, (2,), 2), View(0, (4,), 4), "B: itemsize 2"),
        (Op.XOR, View(0, (4,), 4), None, View(0, (4,), 4), "B: XOR has two operands"),
        (Op.COUNT, View(0, (4,), 4), None, View(0, (2,), 2), "Y: itemsize 2"),
        (Op.COUNT_AND, View(0, (4,), 4), None, View(0, (1,), 1), "B: COUNT_AND has two operands"),
        (Op.COUNT_XOR, View(0, (4,), 4), View(0, (2,), 2), View(0, (1,), 1), "B: itemsize 2"),
        (Op.COUNT_XOR, View(0, (2,), 2), View(0, (2,), 2), View(0, (2,), 2), "Y: itemsize 2"),
        (Op.NOT, View(0, (4,), 4), None, View(0, (1,), 1), "Y: itemsize 1"),
    ],
)
def test_unfit_views_are_refused(op: Op, a: View, b: View | None, y: View, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        commands(op, (1,), a, b, y)
