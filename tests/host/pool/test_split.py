"""Calls on a pool are cut so that every element is in one piece, with its operands."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bitlane.pool.split import chunk_of, split, split_axis

SHAPES = st.lists(st.integers(1, 9), max_size=4).map(tuple)


@given(st.integers(1, 10_000_000), st.integers(1, 8), st.integers(1, 9))
def test_pieces_cover_the_axis_in_order(length: int, itemsize: int, devices: int) -> None:
    cuts = split((length,), 0, itemsize, devices)
    assert [cut.start for cut in cuts] == [0, *(cut.stop for cut in cuts[:-1])]
    assert cuts[-1].stop == length
    assert all(cut.start < cut.stop for cut in cuts)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_every_device_gets_as_many_pieces(devices: int) -> None:
    for size in (5 << 20, 13 << 20):
        count = len(split((size,), 0, 1, devices))
        assert count % devices == 0
        assert size / count <= 1 << 20


def test_what_is_small_is_not_cut_small() -> None:
    assert len(split((1000, 16), 0, 1, 8)) == 1
    assert len(split((4000, 16), 0, 1, 8)) == 3


@pytest.mark.parametrize(
    ("shape", "axes", "axis"),
    [
        ((100, 5000), (0, 1), 0),
        ((2, 5000), (0, 1), 1),
        ((1, 1, 7), (0, 1, 2), 2),
        ((3, 2), (0, 1), 0),
        ((3, 900), (0,), 0),
        ((1, 900), (0,), None),
        ((), (), None),
        ((50, 0), (0, 1), None),
    ],
)
def test_the_axis_that_is_split(
    shape: tuple[int, ...], axes: tuple[int, ...], axis: int | None
) -> None:
    assert split_axis(shape, axes) == axis


@given(SHAPES, st.data())
def test_operands_are_cut_unless_repeated(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = split_axis(shape, range(len(shape)))
    assume(axis is not None)
    assert axis is not None
    kept = data.draw(st.integers(0, len(shape)))
    own = tuple(n if data.draw(st.booleans()) else 1 for n in shape[kept:])
    operand = np.arange(np.prod(own, dtype=int)).reshape(own)
    start = data.draw(st.integers(0, shape[axis] - 1))
    piece = slice(start, data.draw(st.integers(start + 1, shape[axis])))
    whole = np.broadcast_to(operand, shape)[(*[slice(None)] * axis, piece)]
    got = chunk_of(operand, len(shape), axis, piece)
    assert np.array_equal(np.broadcast_to(got, whole.shape), whole)
