"""Cutting tensors that the device's memory cannot hold at once. Shapes only."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from types import EllipsisType
from typing import TypeAlias

__all__ = ["Index", "tile_shape", "tiles"]

Index: TypeAlias = "tuple[slice | EllipsisType, ...]"


def tile_shape(
    shape: tuple[int, ...], order: Sequence[int], fits: Callable[[tuple[int, ...]], bool]
) -> tuple[int, ...] | None:
    """The largest box of ``shape`` that ``fits``, whole along as many inner axes as possible.

    ``order``: the axes, outermost in memory first. None if not even one element fits.
    """
    box = list(shape)
    if fits(shape):
        return shape
    for axis in order:
        box[axis] = 1
        if not fits(tuple(box)):
            continue
        least, most = 1, shape[axis]
        while most - least > 1:
            box[axis] = (least + most) // 2
            if fits(tuple(box)):
                least = box[axis]
            else:
                most = box[axis]
        box[axis] = least
        return tuple(box)
    return None


def tiles(
    shape: tuple[int, ...], box: tuple[int, ...], order: Sequence[int], *, backwards: bool = False
) -> Iterator[Index]:
    """Indices of boxes that together are ``shape``, in the order of memory or against it.

    Those at the ends of the axes are smaller.
    """
    starts = [range(0, shape[axis], box[axis]) for axis in order]
    if backwards:
        starts = [positions[::-1] for positions in starts]
    for corner in product(*starts):
        index = [slice(None)] * len(shape)
        for axis, start in zip(order, corner, strict=True):
            index[axis] = slice(start, start + box[axis])
        # With the ellipsis, also an array without axes gives an array.
        yield (*index, ...)
