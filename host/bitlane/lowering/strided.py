"""Strided tensors in memory: the bytes that they span, and how their axes broadcast and pack.

Arithmetic on numbers alone: no data types but their size, no device and no commands.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Final, NamedTuple

from ..errors import ShapeError

WIDTHS: Final = (1, 2, 4, 8)
"""Bytes that an element may have."""


class View(NamedTuple):
    """A tensor in the device's memory.

    ``address`` of element 0 in bytes; ``strides`` in bytes, one an axis, of any sign, 0 for an
    axis that repeats; ``itemsize`` 1, 2, 4 or 8 bytes.
    """

    address: int
    strides: tuple[int, ...]
    itemsize: int

    def moved(self, offset: int) -> "View":
        """Return the same elements ``offset`` bytes further on."""
        return View(self.address + offset, self.strides, self.itemsize)

    def relative(self) -> "View":
        """Return the view at the lowest address at which its elements are aligned alike."""
        return View(self.address % WIDTHS[-1], self.strides, self.itemsize)

    def span(self, shape: Sequence[int]) -> range:
        """Return the addresses from the lowest byte of ``shape`` elements to the highest."""
        return span(shape, self.strides, self.itemsize, self.address)

    def broadcast(self, shape: Sequence[int], target: Sequence[int]) -> "View":
        """Return this view of ``shape`` elements repeated to the shape ``target``."""
        if shape == target:
            return self
        return View(self.address, broadcast_strides(shape, self.strides, target), self.itemsize)


class Streams(NamedTuple):
    """The operands A and B of an operation and its result Y; one operand alone is A."""

    a: View
    b: View | None
    y: View


def span(shape: Sequence[int], strides: Sequence[int], itemsize: int, first: int = 0) -> range:
    """Return the bytes from the lowest of ``shape`` elements to the highest.

    Element 0 is at ``first``; ``shape`` holds no zero.
    """
    low = high = first
    for count, step in zip(shape, strides, strict=True):
        if step < 0:
            low += step * (count - 1)
        else:
            high += step * (count - 1)
    return range(low, high + itemsize)


def overlap(one: range, other: range) -> bool:
    """Return whether two ranges of addresses, neither of them empty, share an address."""
    return one.start < other.stop and other.start < one.stop


def broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that two shapes broadcast to, of any number of axes. ``ShapeError``."""
    if a == b:
        return a
    axes = []
    for x, y in zip_longest(reversed(a), reversed(b), fillvalue=1):
        if x != y and 1 not in (x, y):
            raise ShapeError(f"a, b: shapes {a} and {b} do not broadcast")
        axes.append(y if x == 1 else x)
    return tuple(reversed(axes))


def broadcast_strides(
    shape: Sequence[int], strides: Sequence[int], target: Sequence[int]
) -> tuple[int, ...]:
    """Return the strides of ``shape`` elements repeated to ``target``, to which they broadcast."""
    own = [0 if count == 1 else step for count, step in zip(shape, strides, strict=True)]
    return (0,) * (len(target) - len(own)) + tuple(own)


@lru_cache(maxsize=512)
def order_of(strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes from the one with the longest steps to the one with the shortest."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))


def packed_strides(
    shape: Sequence[int], order: Sequence[int] | None = None, itemsize: int = 1
) -> tuple[int, ...]:
    """Return the strides of elements without gaps, in bytes, or in elements without ``itemsize``.

    ``order``: the axes, outermost in memory first; C's order by default.
    """
    strides = [0] * len(shape)
    step = itemsize
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)
