"""Operands that share memory with the output of a call that is done in pieces.

Looks at addresses and strides; copies what cannot be helped, and never computes.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .operands import AnyArray, address_of, detached, same_place
from .tiles import Index

__all__ = ["untangle"]

# Any, because NumPy's stubs know no other limits than two special ones.
_WORK: Final[Any] = 10_000
"""Steps that finding out whether two arrays share an element may take."""


def untangle(inputs: Sequence[AnyArray], out: AnyArray) -> tuple[list[AnyArray], AnyArray, bool]:
    """What to compute piece by piece so that no piece reads what an earlier one has written.

    Arrays have one shape. Returns operands and output, the same elements in another order perhaps,
    and whether the pieces are to be taken against the order of the output's memory.

    An operand that lies like the output, but higher or lower, as ``a[1:]`` and ``a[:-1]`` do, is
    read ahead of the writing: this is ``memmove``. One that is the same elements is read before
    they are written. Of any other that shares memory with the output a copy is made, and so of one
    of two that would want different directions.
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
            operands[number] = detached(x)
    return operands, out, bool(backwards)


def _share(a: AnyArray, b: AnyArray) -> bool:
    """Whether two arrays share a byte; yes if that is hard to tell."""
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
    """Whether each step of an axis passes over all that the axes inside it span.

    Only then do pieces in the order of memory lie one behind the other.
    """
    span = array.itemsize
    for step, count in sorted(zip(array.strides, array.shape, strict=True)):
        if count > 1:
            if step < span:
                return False
            span += step * (count - 1)
    return True
