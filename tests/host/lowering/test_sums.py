"""Sums of counts: known layouts are one command, and what is no run is refused."""

import dataclasses
from math import prod
from typing import Any

import pytest

from bitlane.driver.commands import Command
from bitlane.driver.geometry import Geometry
from bitlane.errors import LayoutError, NoRunError, RowTooLongError, UnsupportedError
from bitlane.lowering.lower import lower
from bitlane.lowering.routes import Options
from bitlane.lowering.strided import Streams, View, packed_strides
from bitlane_rtl.abi import Lane, Mode, Op

GEOMETRY = Geometry(
    data_bytes=8,
    loops=4,
    slots=16,
    length_bits=24,
    count_bits=24,
    memory_base=0,
    memory_last=(1 << 32) - 1,
)


def one(shape: tuple[int, ...], a: View, b: View | None, y: View, **changes: Any) -> Command:
    """Return the only command of a sum."""
    op = Op.COUNT if b is None else Op.COUNT_XOR
    geometry = dataclasses.replace(GEOMETRY, **changes)
    (command,) = lower(op, shape, Streams(a, b, y), geometry.abilities, geometry.memory)
    return command


def test_rows_and_one_query_are_one_command() -> None:
    command = one(
        (500, 256), View(0, (256, 1), 1), View(1 << 20, (0, 1), 1), View(1 << 21, (4, 0), 4)
    )
    assert command.op is Op.COUNT_XOR
    assert (command.lane, command.out_lane) == (Lane.BITS_64, Lane.BITS_32)
    assert (command.run, command.counts) == (32, (500,))
    assert command.b is not None
    assert (command.a.jumps, command.b.jumps, command.y.jumps) == ((256,), (0,), (4,))
    modes = (command.a.mode, command.b.mode, command.y.mode)
    assert modes == (Mode.DENSE, Mode.DENSE, Mode.SUM)
    assert (command.y.base, command.y.last) == (1 << 21, (1 << 21) + 4 * 500 - 1)


@pytest.mark.parametrize("shape", [(4096,), (64, 64), (4, 1, 8, 4, 32), (1, 1)])
def test_all_of_a_packed_tensor_is_one_run(shape: tuple[int, ...]) -> None:
    view = View(3, packed_strides(shape, itemsize=4), 4)
    command = one(shape, view, None, View(1 << 20, (0,) * len(shape), 4))
    assert command.loops == 1
    assert command.run * command.lane.bytes == 4 * prod(shape)


def test_queries_and_rows_are_one_command_of_three_loops() -> None:
    a, b = View(0, (64, 0, 1), 1), View(1 << 20, (0, 64, 1), 1)
    command = one((5, 700, 64), a, b, View(1 << 21, (2800, 4, 0), 4))
    assert (command.run, command.counts) == (8, (700, 5))


@pytest.mark.parametrize(("step", "mode"), [(-1, Mode.DENSE), (-2, Mode.STRIDED)])
def test_rows_that_descend_are_as_those_that_ascend(step: int, mode: Mode) -> None:
    command = one((99,), View(0x1000, (step,), 1), None, View(0, (0,), 4))
    assert command.a.mode is mode
    assert command.a.base == 0x1000 + 98 * step


def test_columns_are_gathered() -> None:
    command = one((300, 7), View(0, (14, 2), 2), None, View(0x4000, (0, 4), 4))
    assert (command.run, command.counts, command.a.mode) == (300, (7,), Mode.STRIDED)
    assert (command.a.stride, command.lane) == (14, Lane.BITS_16)


def test_a_constant_beside_rows_is_read_once_a_run() -> None:
    command = one((9, 50), View(0, (200, 4), 4), View(0x4000, (0, 0), 4), View(0x5000, (4, 0), 4))
    assert command.b is not None
    assert (command.run, command.a.mode, command.b.mode) == (50, Mode.DENSE, Mode.REPEAT)


def test_a_row_may_have_as_many_bytes_as_a_run() -> None:
    most = GEOMETRY.longest_run
    assert most == (1 << 24) - 1
    y = View(1 << 25, (0,), 4)
    assert one((most,), View(0, (1,), 1), None, y).run == most
    with pytest.raises(RowTooLongError, match="16777216 bytes a row; expected 16777215"):
        one((most + 1,), View(0, (1,), 1), None, y)


def test_a_row_is_never_cut() -> None:
    # Counts of as many bytes as elements would take a run four times as long.
    command = one((3, 4095), View(0, (4095, 1), 1), None, View(1 << 20, (4, 0), 4), length_bits=12)
    assert (command.run, command.counts) == (4095, (3,))


def test_what_is_no_run_is_refused() -> None:
    y = View(1 << 20, (4, 0, 0), 4)
    with pytest.raises(NoRunError, match="7 x 3 bytes that are 16, 1 bytes apart"):
        one((5, 7, 3), View(0, (200, 16, 1), 1), None, y)
    strided = (9,), View(0, (16,), 8), None, View(1 << 20, (0,), 4)
    assert one(*strided).run == 9
    lacking: list[dict[str, Any]] = [
        {"modes": frozenset({Mode.DENSE, Mode.SUM})},
        {"lanes": frozenset({Lane.BITS_8})},
        {"data_bytes": 4},
    ]
    for changes in lacking:
        with pytest.raises(NoRunError):
            one(*strided, **changes)


def test_what_the_device_lacks_is_named() -> None:
    work = (9, 8), View(0, (8, 1), 1), View(512, (8, 1), 1), View(1024, (4, 0), 4)
    with pytest.raises(UnsupportedError, match="without sums of COUNT_XOR"):
        one(*work, modes=frozenset({Mode.DENSE}))
    with pytest.raises(UnsupportedError, match="without COUNT_XOR; it has AND"):
        one(*work, ops=frozenset({Op.AND}))
    with pytest.raises(UnsupportedError, match="no lanes for sums of 7 bytes; it has 16 bits"):
        one((7,), View(0, (1,), 1), None, View(64, (0,), 4), lanes=frozenset({Lane.BITS_16}))


@pytest.mark.parametrize(
    ("op", "y", "message"),
    [
        (Op.COUNT, View(2, (4, 0), 4), "multiples of it"),
        (Op.COUNT, View(0, (6, 0), 4), "multiples of it"),
        (Op.COUNT, View(0, (1, 0), 1), "elements of 1 bytes"),
        (Op.COPY, View(0, (1, 0), 1), "must not overlap"),
        (Op.COUNT, View((1 << 32) - 16, (4, 0), 4), "outside the device's memory"),
    ],
)
def test_sums_lie_where_elements_of_32_bits_can(op: Op, y: View, message: str) -> None:
    streams = Streams(View(0x1000, (8, 1), 1), None, y)
    with pytest.raises(LayoutError, match=message):
        lower(op, (5, 8), streams, GEOMETRY.abilities, GEOMETRY.memory)


def test_no_elements_take_no_command() -> None:
    streams = Streams(View(0, (0, 1), 1), None, View(0, (4, 0), 4))
    assert list(lower(Op.COUNT, (3, 0), streams, GEOMETRY.abilities, GEOMETRY.memory)) == []


def test_rows_of_one_element_are_sums_if_y_has_no_stride_for_them() -> None:
    a = View(0, (4, 4), 4)
    assert one((9, 1), a, None, View(1024, (4,), 4)).y.mode is Mode.SUM
    assert one((9, 1), a, None, View(1024, (4, 0), 4)).y.mode is Mode.DENSE
    assert one((9, 5), a, None, View(1024, (4,), 4)).run == 5


def test_an_element_without_a_lane_is_counted_by_its_bytes() -> None:
    view = View(0, (8,), 8)
    command = one((9,), view, None, View(1024, (4,), 4), lanes=frozenset({Lane.BITS_16}))
    assert (command.lane, command.run, command.y.mode) == (Lane.BITS_16, 4, Mode.SUM)
    with pytest.raises(UnsupportedError, match="no 64-bit lanes"):
        one((9,), view, None, View(1024, (1,), 1), lanes=frozenset({Lane.BITS_16}))


TEST = Options.TEST


def sum_of_tests(
    shape: tuple[int, ...], a: View, y: View, options: Options, **changes: Any
) -> Command:
    """Return the only command of a sum of tests."""
    geometry = dataclasses.replace(GEOMETRY, **changes)
    (command,) = lower(
        Op.COUNT, shape, Streams(a, None, y), geometry.abilities, geometry.memory, options
    )
    return command


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("options", [TEST, TEST | Options.NEGATE])
def test_a_sum_of_tests_has_the_lane_of_its_elements(size: int, options: Options) -> None:
    command = sum_of_tests(
        (50, 8), View(0, (8 * size, size), size), View(1 << 20, (4, 0), 4), options
    )
    assert (command.lane, command.run, command.counts) == (Lane(size.bit_length() - 1), 8, (50,))
    assert (command.test, command.negate) == (True, Options.NEGATE in options)
    whole = sum_of_tests(
        (50, 8), View(0, (8 * size, size), size), View(1 << 20, (0, 0), 4), options
    )
    assert (whole.run, whole.counts, whole.y.mode) == (400, (), Mode.SUM)


def test_a_sum_of_tests_is_of_one_run_in_a_lane_that_is_built() -> None:
    columns = sum_of_tests((300, 7), View(0, (14, 2), 2), View(0x4000, (0, 4), 4), TEST)
    assert (columns.run, columns.a.mode, columns.a.stride) == (300, Mode.STRIDED, 14)
    single = sum_of_tests((9, 1), View(0, (4, 4), 4), View(0x4000, (4,), 4), TEST)
    assert (single.run, single.counts, single.y.mode) == (1, (9,), Mode.SUM)
    narrow = sum_of_tests((9,), View(0, (8,), 8), View(0x4000, (0,), 4), TEST, data_bytes=4)
    assert (narrow.run, narrow.lane) == (9, Lane.BITS_64)
    gaps = (5, 7, 3), View(0, (200, 16, 1), 1), View(1 << 20, (4, 0, 0), 4)
    with pytest.raises(NoRunError, match="7 x 3 elements that are 16, 1 bytes apart"):
        sum_of_tests(*gaps, TEST)
    with pytest.raises(NoRunError, match="9 elements that are 16 bytes apart"):
        sum_of_tests((9,), View(0, (16,), 8), View(0x4000, (0,), 4), TEST, data_bytes=4)
    with pytest.raises(RowTooLongError, match="16777216 bytes a row"):
        sum_of_tests((1 << 21,), View(0, (8,), 8), View(1 << 25, (0,), 4), TEST)
    work = (9,), View(0, (8,), 8), View(1024, (4,), 4)
    lacking = {"lanes": frozenset({Lane.BITS_16})}
    for y in (work[2], View(1024, (0,), 4)):
        with pytest.raises(UnsupportedError, match="no 64-bit lanes for"):
            sum_of_tests(*work[:2], y, TEST, **lacking)


@pytest.mark.parametrize(("op", "options"), [(Op.XOR, TEST), (Op.COUNT_XOR, Options.NEGATE)])
def test_a_test_is_of_a_count(op: Op, options: Options) -> None:
    view = View(0, (1,), 1)
    with pytest.raises(UnsupportedError, match=f"of {op.name}; expected TEST, of a count"):
        lower(op, (9,), Streams(view, view, view), GEOMETRY.abilities, GEOMETRY.memory, options)
