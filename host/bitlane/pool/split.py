"""How a call is split: along which axis of its result, and what of each operand goes where.

Looks at shapes alone.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from .._typing import AnyArray

_LONG = 64
"""Elements of an axis that is cut into pieces of about one size."""

_LEAST_BYTES = 16 * 1024
"""Of a piece, unless there is no more: sending a smaller one takes longer than computing it."""

_MOST_BYTES = 1 << 20
"""Of a piece: a device that is lost costs no more, and none waits long for the slowest."""


def split_axis(shape: tuple[int, ...], axes: Sequence[int]) -> int | None:
    """Which of ``axes`` of a ``shape`` to split: the first that is as long as any, or long enough.

    None if there is nothing to split.
    """
    longest = max((shape[axis] for axis in axes), default=0)
    if longest < 2 or 0 in shape:
        return None
    return next(axis for axis in axes if shape[axis] >= min(longest, _LONG))


def pieces(shape: tuple[int, ...], axis: int, itemsize: int, devices: int) -> list[slice]:
    """Parts of ``axis``, in order: for each of ``devices`` as many, where there is enough to do.

    ``itemsize``: bytes that an element of ``shape`` stands for.
    """
    size = prod(shape) * itemsize
    rounds = -(-size // (devices * _MOST_BYTES))
    wanted = min(devices * rounds, max(1, size // _LEAST_BYTES), shape[axis])
    bounds = [shape[axis] * number // wanted for number in range(wanted + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]


def part(operand: AnyArray, rank: int, axis: int, piece: slice) -> AnyArray:
    """What of ``operand`` belongs to ``piece`` of ``axis`` of a result of ``rank`` axes.

    All of it where it is repeated along that axis.
    """
    own = axis - (rank - operand.ndim)
    if own < 0 or operand.shape[own] == 1:
        return operand
    return operand[(*[slice(None)] * own, piece)]
