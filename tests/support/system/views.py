"""Random NumPy views of one block of bytes, and plain NumPy's results for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bitlane import reference
from bitlane_rtl.abi import Op

SLACK = 32
"""Bytes before and after the bytes of a view, at least."""

Array = NDArray[Any]


@dataclass(frozen=True)
class ViewOf:
    """The layout of a view in a block of bytes, in the terms of ``np.ndarray``."""

    shape: tuple[int, ...]
    dtype: str
    offset: int
    """Bytes from the block's start to element 0."""
    strides: tuple[int, ...]

    def of(self, block: NDArray[np.uint8]) -> Array:
        return np.ndarray(self.shape, self.dtype, block.data, self.offset, self.strides)

    @property
    def size(self) -> int:
        """The size in bytes of a block that holds this view, and some bytes after it."""
        steps = zip(self.shape, self.strides, strict=True)
        reach = sum(max(0, stride * (n - 1)) for n, stride in steps)
        return self.offset + reach + np.dtype(self.dtype).itemsize + SLACK


def shapes(most: int = 400) -> st.SearchStrategy[tuple[int, ...]]:
    """Return shapes of up to 8 dimensions and ``most`` elements; none of the dimensions is 0."""
    side = st.one_of(st.integers(1, 3), st.integers(1, 33))
    some = st.lists(side, max_size=8).map(tuple)
    return some.filter(lambda shape: int(np.prod(shape)) <= most)


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...], dtype: str, *, output: bool = False) -> ViewOf:
    """Draw an unaligned view with permuted, reversed, stepped, padded or (inputs) repeated axes.

    Elements of an output never share a byte.
    """
    itemsize = np.dtype(dtype).itemsize
    axes = draw(st.one_of(st.just(list(range(len(shape)))), st.permutations(range(len(shape)))))
    # A step of an odd number of bytes is that of a field in a packed record.
    step = itemsize * draw(st.sampled_from([1, 1, 1, 2, 3])) + draw(st.sampled_from([0, 0, 0, 1]))
    strides = [0] * len(shape)
    for axis in reversed(axes):
        strides[axis] = draw(st.sampled_from([1, 1, -1])) * step
        if not output and draw(st.integers(0, 7)) == 0:
            strides[axis] = 0
        step = step * shape[axis] + draw(st.sampled_from([0, 0, 0, itemsize, 3]))
    below = sum(max(0, -stride * (n - 1)) for n, stride in zip(shape, strides, strict=True))
    offset = SLACK + below + draw(st.one_of(st.integers(0, 9), st.integers(0, 200)))
    return ViewOf(shape, draw(st.sampled_from("<<<>")) + dtype, offset, tuple(strides))


def answer(op: Op, a: Array, b: Array | None, counts: str = "u1") -> Array:
    """Return NumPy's result for native arrays; floats are computed on their encoding.

    It comes from NumPy wherever NumPy has the operation, and from ``reference`` for counts, because
    NumPy counts the bits of the absolute value.
    """
    if op.counts:
        return reference.bit_count(a, np.dtype(counts).type)
    numpy: dict[Op, Any] = {
        Op.NOT: np.invert,
        Op.AND: np.bitwise_and,
        Op.OR: np.bitwise_or,
        Op.XOR: np.bitwise_xor,
        Op.SHIFT_LEFT: np.left_shift,
        Op.SHIFT_RIGHT: np.right_shift,
    }
    operands = [x for x in (a, b) if x is not None]
    if a.dtype.kind == "f":
        operands = [_encoding(x) for x in operands]
    result = np.asarray(numpy[op](*operands))
    return result.reshape(-1).view(a.dtype).reshape(result.shape)


def _encoding(array: Array) -> Array:
    copy = np.array(array, order="C")
    return copy.reshape(-1).view(f"u{copy.itemsize}").reshape(copy.shape)
