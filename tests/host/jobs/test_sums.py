"""Sums of counts: known layouts are one command, any layout that is a run is summed as NumPy does.

Random layouts run on the interpreter of the contract; the expected bytes come from NumPy.
"""

import dataclasses
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane.driver.commands import Command
from bitlane.driver.geometry import Geometry
from bitlane.jobs.lowering import LayoutError, UnsupportedError, View
from bitlane.jobs.operands import packed_strides
from bitlane.jobs.sums import NoRunError, RowTooLongError, longest_row, lower_sum
from bitlane_rtl.abi import COUNT_OPS, Lane, Mode, Op
from support.host.layouts import execute, geometries, interpreter, views, window
from support.seeds import examples

MEMORY = 1 << 13

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
    (command,) = lower_sum(op, shape, a, b, y, geometry=dataclasses.replace(GEOMETRY, **changes))
    return command


# --- known layouts ----------------------------------------------------------------------------


def test_rows_and_one_query_are_one_command() -> None:
    command = one(
        (500, 256), View(0, (256, 1), 1), View(1 << 20, (0, 1), 1), View(1 << 21, (4, 0), 4)
    )
    assert (command.op, command.lane, command.out_lane) == (
        Op.COUNT_XOR,
        Lane.BITS_64,
        Lane.BITS_32,
    )
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
    most = longest_row(GEOMETRY)
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
        (Op.COPY, View(0, (1, 0), 1), "sums of COPY"),
        (Op.COUNT, View((1 << 32) - 16, (4, 0), 4), "outside the device's memory"),
    ],
)
def test_sums_lie_where_elements_of_32_bits_can(op: Op, y: View, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        lower_sum(op, (5, 8), View(0x1000, (8, 1), 1), None, y, geometry=GEOMETRY)


def test_no_elements_take_no_command() -> None:
    nothing = lower_sum(
        Op.COUNT, (3, 0), View(0, (0, 1), 1), None, View(0, (4, 0), 4), geometry=GEOMETRY
    )
    assert list(nothing) == []


# --- any layout -------------------------------------------------------------------------------


@st.composite
def works(draw: st.DrawFn) -> tuple[Op, tuple[int, ...], View, View | None, View]:
    """Draw a sum along some axes of tensors of up to 2 KiB, with Y behind them."""
    op = draw(st.sampled_from(sorted(COUNT_OPS)))
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 2, 3, 4, 5, 8, 11]), max_size=5)))
    while prod(shape) > 200:
        shape = shape[1:]
    size = draw(st.sampled_from([1, 2, 4, 8]))
    a = draw(views(shape, size, 0, output=False))
    b = draw(views(shape, size, 2048 + 64, output=False)) if op.reads_b else None
    kept = [draw(st.booleans()) for _ in shape]
    y = draw(views(tuple(n for n, keep in zip(shape, kept, strict=True) if keep), 4, 4352, True))
    steps = iter(y.strides)
    strides = tuple(next(steps) if keep else 0 for keep in kept)
    return op, shape, a, b, View(y.address, strides, 4)


def summed(
    op: Op, a: NDArray[Any], b: NDArray[Any] | None, axes: tuple[int, ...]
) -> NDArray[np.uint32]:
    """Return the sum, computed with Python's integers."""
    other = a if b is None else b
    values = [
        {Op.COUNT_AND: x & z, Op.COUNT_OR: x | z, Op.COUNT_XOR: x ^ z, Op.COUNT: x}[op].bit_count()
        for x, z in zip(a.ravel().tolist(), other.ravel().tolist(), strict=True)
    ]
    result: NDArray[np.uint32] = np.array(values, np.uint32).reshape(a.shape).sum(axes, np.uint32)
    return result


@examples(4)
@given(works(), geometries(MEMORY), st.integers(0, 9).map(bool), st.integers(0, 1 << 32))
def test_any_layout_on_any_circuit(
    work: tuple[Op, tuple[int, ...], View, View | None, View],
    geometry: Geometry,
    with_sums: bool,
    seed: int,
) -> None:
    op, shape, a, b, y = work
    if with_sums:
        geometry = dataclasses.replace(geometry, modes=geometry.modes | {Mode.SUM})
    model = interpreter(geometry, seed)
    try:
        got = list(lower_sum(op, shape, a, b, y, geometry=geometry))
    except UnsupportedError:
        assert Mode.SUM not in geometry.modes or Lane.BITS_8 not in geometry.lanes
        return
    except NoRunError:
        if Lane.BITS_8 not in geometry.lanes:
            return
        packed = [View(0, packed_strides(shape, order_of_sum(y), a.itemsize), a.itemsize)] * 2
        list(lower_sum(op, shape, packed[0], packed[1], y, geometry=geometry))
        return
    except LayoutError:
        assert y.address % 4 or any(stride % 4 for stride in y.strides)
        return
    axes = tuple(axis for axis, step in enumerate(y.strides) if not step)
    operands = [window(model.memory, view, shape).copy() for view in (a, b) if view is not None]
    result = summed(op, operands[0], operands[1] if b else None, axes)
    after = model.memory.copy()
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    place = View(y.address, tuple(y.strides[axis] for axis in kept), 4)
    window(after, place, [shape[axis] for axis in kept])[...] = result
    execute(model, got)
    assert np.array_equal(model.memory, after), got


def order_of_sum(y: View) -> list[int]:
    """Axes of a copy in which whatever belongs to one sum is a run."""
    return sorted(range(len(y.strides)), key=lambda axis: y.strides[axis] == 0)
