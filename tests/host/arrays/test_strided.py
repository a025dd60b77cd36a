"""Views have NumPy's shapes, strides and first element."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from bitlane import ShapeError
from bitlane.arrays import Strided

BYTES = np.zeros(1 << 14, np.uint8)

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def described(array: NDArray[Any]) -> Strided:
    offset = array.__array_interface__["data"][0] - BYTES.__array_interface__["data"][0]
    return Strided(array.shape, array.strides, array.itemsize, offset)


def alike(got: Strided, want: Strided) -> bool:
    """Return whether two views have the same elements; strides of axes of length 1 are ignored."""

    def elements(x: Strided) -> tuple[object, ...]:
        steps = [s if n > 1 else 0 for n, s in zip(x.shape, x.strides, strict=True)]
        return (x.shape, x.itemsize) + ((steps, x.offset) if x.size else ())

    return elements(got) == elements(want)


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Return an array in ``BYTES``, cut, reversed and with its axes in any order."""
    shape = draw(SHAPES)
    array = np.ndarray(shape, draw(st.sampled_from(["u1", "u2", "u4", "u8"])), BYTES.data)
    array = array[draw(hnp.basic_indices(shape))]
    order: Any = draw(st.permutations(range(np.ndim(array))))
    return np.asarray(array).transpose(order) if isinstance(array, np.ndarray) else BYTES[:1]


@given(data=st.data(), array=arrays())
def test_an_index_shows_what_numpy_shows(data: st.DataObject, array: NDArray[Any]) -> None:
    key = data.draw(
        hnp.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True, max_dims=8)
    )
    # With the ellipsis NumPy gives an array for one element too.
    full = key if isinstance(key, tuple) else (key,)
    want = array[full if ... in full else (*full, ...)]
    assert alike(described(array).index(key), described(want)), (array.shape, array.strides, key)


@given(data=st.data(), array=arrays())
def test_a_reshape_is_a_view_where_numpy_has_one(data: st.DataObject, array: NDArray[Any]) -> None:
    factors = [n for n in array.shape for n in ([n] if n < 4 else [2, n // 2] if n == 4 else [n])]
    shape = list(data.draw(st.permutations(factors)))
    if len(shape) > 1 and data.draw(st.booleans()):
        shape[:2] = [shape[0] * shape[1]]
    shape.insert(data.draw(st.integers(0, len(shape))), 1)
    got = described(array).reshape(tuple(shape))
    want = array.reshape(shape)
    if got is None:
        assert not np.shares_memory(want, array), (array.shape, array.strides, shape)
    else:
        assert alike(got, described(want)) or not array.size, (array.shape, array.strides, shape)
        assert got.shape == want.shape


@pytest.mark.parametrize("first", [1, -1, 2])
@pytest.mark.parametrize("second", [1, -1, 2])
@pytest.mark.parametrize("wanted", [(-1,), (2, -1), (3, 2, 1, 4), (4, 6)])
def test_flipped_axes_merge_if_both_are(first: int, second: int, wanted: tuple[int, ...]) -> None:
    array = np.ndarray((4, 6) if {first, second} <= {1, -1} else (8, 12), "u2", BYTES.data)
    array = array[::first, ::second][:4, :6]
    got = described(array).reshape(described(array).infer_shape(wanted))
    want = array.reshape(wanted)
    assert (got is not None) == np.shares_memory(want, array)
    assert got is None or alike(got, described(want))


@given(array=arrays(), extra=st.lists(st.integers(0, 4), max_size=2), data=st.data())
def test_broadcasts_and_turns(array: NDArray[Any], extra: list[int], data: st.DataObject) -> None:
    wanted = (*extra, *(data.draw(st.integers(0, 3)) if n == 1 else n for n in array.shape))
    assert alike(described(array).broadcast(wanted), described(np.broadcast_to(array, wanted)))
    order: Any = data.draw(st.permutations(range(array.ndim)))
    assert alike(described(array).transpose(order), described(array.transpose(order)))
    assert alike(described(array).transpose(), described(array.T))


@given(array=arrays(), itemsize=st.sampled_from([1, 2, 4, 8]))
def test_other_types_of_the_same_bytes_are_numpys(array: NDArray[Any], itemsize: int) -> None:
    try:
        want = array.view(f"u{itemsize}")
    except (ValueError, TypeError):
        with pytest.raises(ShapeError):
            described(array).recast(itemsize)
    else:
        assert alike(described(array).recast(itemsize), described(want))


def test_numpys_integers_are_integers() -> None:
    whole = Strided.packed((3, 4), 2)
    for number in (np.int8(-1), np.uint64(2), np.array(2)):
        assert whole.index(number) == whole.index(2)
