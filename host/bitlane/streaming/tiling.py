"""Tiles of tensors that do not fit the device's memory, and outputs that share it with operands."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from types import EllipsisType
from typing import Any, Final, TypeAlias

import numpy as np

from .._typing import AnyArray
from ..arguments.operands import address_of, private_copy, same_place

Index: TypeAlias = "tuple[slice | EllipsisType, ...]"


def tile_shape(
    shape: tuple[int, ...], order: Sequence[int], fits: Callable[[tuple[int, ...]], bool]
) -> tuple[int, ...] | None:
    """Return the largest tile of ``shape`` that ``fits``, whole along as many axes as possible.

    ``order``: the axes, outermost in memory first. None if not even one element fits.
    """
    tile = list(shape)
    if fits(shape):
        return shape
    for axis in order:
        tile[axis] = 1
        if not fits(tuple(tile)):
            continue
        least, most = 1, shape[axis]
        while most - least > 1:
            tile[axis] = (least + most) // 2
            if fits(tuple(tile)):
                least = tile[axis]
            else:
                most = tile[axis]
        tile[axis] = least
        return tuple(tile)
    return None


def tiles(
    shape: tuple[int, ...], tile: tuple[int, ...], order: Sequence[int], *, backwards: bool = False
) -> Iterator[Index]:
    """Yield the indices of tiles of ``shape``, in the order of memory or against it.

    Tiles at the ends of the axes are smaller.
    """
    starts = [range(0, shape[axis], tile[axis]) for axis in order]
    if backwards:
        starts = [positions[::-1] for positions in starts]
    for corner in product(*starts):
        index = [slice(None)] * len(shape)
        for axis, start in zip(order, corner, strict=True):
            index[axis] = slice(start, start + tile[axis])
        # With the ellipsis, also an array without axes gives an array.
        yield (*index, ...)


# Any, because NumPy's stubs know no other limits than two special ones.
_WORK: Final[Any] = 10_000
"""Most steps of the search for an element that two arrays share."""


def resolve_aliasing(
    inputs: Sequence[AnyArray], out: AnyArray
) -> tuple[list[AnyArray], AnyArray, bool]:
    """Return operands and an output whose tiles never read bytes that earlier tiles wrote.

    Arrays have one shape. The elements are the same, perhaps in another order; the last result is
    whether tiles must descend in the output's memory.

    An operand with the output's layout at higher or lower addresses, as ``a[1:]`` and ``a[:-1]``,
    is read ahead of the writing, as ``memmove`` does. The very elements of the output are read
    before they are written. Any other operand that shares memory with the output is copied, and so
    is one of two that need different directions.
    """
    # With the ellipsis, also an array without axes gives an array.
    flips: Index = (*(slice(None, None, -1 if step < 0 else 1) for step in out.strides), ...)
    out = out[flips]
    operands = [x[flips] for x in inputs]
    nested = _nested(out)
    backwards: bool | None = None
    for number, x in enumerate(operands):
        if same_place(x, out) or not _share(x, out):
            continue
        below = address_of(x) < address_of(out)
        if nested and _lies_like(x, out) and backwards in (None, below):
            backwards = below
        else:
            operands[number] = private_copy(x)
    return operands, out, bool(backwards)


def _share(a: AnyArray, b: AnyArray) -> bool:
    """Return whether two arrays share a byte; True if that is hard to tell."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def _lies_like(a: AnyArray, b: AnyArray) -> bool:
    return a.itemsize == b.itemsize and all(
        n == 1 or x == y for n, x, y in zip(b.shape, a.strides, b.strides, strict=True)
    )


def _nested(array: AnyArray) -> bool:
    """Return whether each step of an axis exceeds the span of the axes inside it.

    Only then are tiles in the order of memory at ascending addresses.
    """
    span = array.itemsize
    for step, count in sorted(zip(array.strides, array.shape, strict=True)):
        if count > 1:
            if step < span:
                return False
            span += step * (count - 1)
    return True
