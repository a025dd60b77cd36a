"""Arithmetic of strided tensors: spans, broadcasting and packing, against NumPy's."""

import numpy as np
import pytest

from bitlane.errors import ShapeError
from bitlane.lowering.strided import (
    View,
    broadcast_shapes,
    overlap,
    packed_strides,
    span,
)


def test_packed_strides_are_those_of_c_order_unless_told() -> None:
    assert packed_strides([2, 3, 4]) == (12, 4, 1)
    assert packed_strides([7]) == (1,)
    assert packed_strides((2, 3, 4), (2, 0, 1), 8) == (24, 8, 48)
    assert packed_strides(()) == ()


@pytest.mark.parametrize("key", [(slice(None),), (slice(3, None, -2), slice(1, 4)), (2, ..., None)])
def test_spans_are_the_bounds_of_numpys_views(key: tuple[slice, ...]) -> None:
    array = np.zeros((5, 6), "u4")
    part = array[key]
    low, high = np.lib.array_utils.byte_bounds(part)
    assert span(part.shape, part.strides, 4, part.ctypes.data) == range(low, high)


def test_views_broadcast_as_numpys_do() -> None:
    array = np.zeros((3, 1, 4), "u2")
    for wanted in ((3, 1, 4), (3, 5, 4), (2, 3, 5, 4)):
        view = View(8, array.strides, 2).broadcast(array.shape, wanted)
        expected = np.broadcast_to(array, wanted)
        assert view.address == 8
        pairs = zip(wanted, view.strides, expected.strides, strict=True)
        assert all(n == 1 or own == other for n, own, other in pairs)
        assert broadcast_shapes(array.shape, wanted) == wanted
    with pytest.raises(ShapeError, match="do not broadcast"):
        broadcast_shapes((3, 2), (3, 4))


@pytest.mark.parametrize(
    ("start", "stop", "shared"),
    [(0, 10, False), (0, 11, True), (19, 20, True), (20, 30, False), (12, 13, True), (0, 99, True)],
)
def test_ranges_overlap_where_they_share_a_byte(start: int, stop: int, shared: bool) -> None:
    assert overlap(range(10, 20), range(start, stop)) is shared
    assert overlap(range(start, stop), range(10, 20)) is shared
