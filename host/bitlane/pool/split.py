"""Cutting the operands of a call into chunks, by their shapes alone."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from .._typing import AnyArray

_LONG = 64
"""Least length of an axis that can be cut into chunks of about equal size."""

_LEAST_BYTES = 16 * 1024
"""Least bytes of a chunk: sending a smaller one takes longer than computing it."""

_MOST_BYTES = 1 << 20
"""Most bytes of a chunk: a lost device costs no more, and no device waits long for the slowest."""


def split_axis(shape: tuple[int, ...], axes: Sequence[int]) -> int | None:
    """Choose which of ``axes`` of a ``shape`` to cut: the first that is the longest, or long.

    None if there is nothing to cut.
    """
    longest = max((shape[axis] for axis in axes), default=0)
    if longest < 2 or 0 in shape:
        return None
    return next(axis for axis in axes if shape[axis] >= min(longest, _LONG))


def split(shape: tuple[int, ...], axis: int, itemsize: int, devices: int) -> list[slice]:
    """Cut ``axis`` into chunks, in order; each of ``devices`` gets equally many of a large array.

    ``itemsize``: bytes of an element of ``shape``.
    """
    size = prod(shape) * itemsize
    rounds = -(-size // (devices * _MOST_BYTES))
    wanted = min(devices * rounds, max(1, size // _LEAST_BYTES), shape[axis])
    bounds = [shape[axis] * number // wanted for number in range(wanted + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]


def chunk_of(operand: AnyArray, rank: int, axis: int, chunk: slice) -> AnyArray:
    """Return the elements of ``operand`` for ``chunk`` of ``axis`` of a result of ``rank`` axes.

    All of them where the operand is repeated along that axis.
    """
    own = axis - (rank - operand.ndim)
    if own < 0 or operand.shape[own] == 1:
        return operand
    return operand[(*[slice(None)] * own, chunk)]
