"""Sums of counts along axes, which the device adds up as it counts; of truth values, how many hold.

Expressions alone; nothing is executed here.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from bitlane_rtl.abi import Op

from ..errors import NotOfferedError
from ..expression.form import (
    Applied,
    Constant,
    Expression,
    added,
    apply,
    broadcast,
    narrowed,
    widened,
    window,
)
from ..jobs.operands import DataTypeError, OutOfRangeError
from .casts import cast
from .strided import axes_of
from .value import Value

__all__ = ["Axes", "chosen_axes", "sum_type", "summed"]

Axes: TypeAlias = int | Sequence[int] | None
"""An axis, several, or all."""

_UINT32: Final = np.dtype(np.uint32)


def chosen_axes(axes: Axes, rank: int) -> tuple[int, ...]:
    """The axes that are meant, from 0 on, in order. Raises ``ShapeError``."""
    return tuple(sorted(axes_of(range(rank) if axes is None else axes, rank)))


def sum_type(dtype: DTypeLike | None, bits: int) -> np.dtype[Any]:
    """The type of sums of at most ``bits``; uint32 for None.

    Raises ``DataTypeError`` for what is no integer, ``OutOfRangeError`` where a sum might not fit.
    """
    try:
        chosen = _UINT32 if dtype is None else np.dtype(dtype)
    except TypeError:
        raise DataTypeError(f"dtype: {dtype!r}; sums are integers") from None
    if chosen.kind not in "ui":
        raise DataTypeError(f"dtype: {chosen}; sums are integers")
    most = np.iinfo(chosen.str).max
    if bits > most:
        raise OutOfRangeError(
            f"dtype: {chosen} holds sums up to {most}; these may be {bits}: expected a wider type"
        )
    return chosen.newbyteorder("=")


def summed(value: Value, axes: Axes, dtype: DTypeLike | None, *, keep: bool) -> Value:
    """The sums of ``value``, counts of bits or truth values, along ``axes``.

    ``keep``: the axes stay, with one element. Raises ``NotOfferedError`` for other values, and as
    ``chosen_axes`` and ``sum_type`` do.
    """
    node = value.node
    width = value.counted_bytes
    if value.dtype.kind == "b":
        node = apply(Op.COUNT, node)
    elif width is not None:
        node = apply(Op.COUNT, _as_ones(node, width))
    elif not (isinstance(node, Applied) and node.op.counts and not node.summed):
        raise NotOfferedError(
            "sum: a device adds up counts of bits alone; expected a pending or computed result of"
            " bit_count or a view of it (not a copy, not one that was stored by out= or written"
            " to), or truth values (cardinality, hamming and jaccard do it in one call;"
            " x.get().sum does it on the host)"
        )
    chosen = chosen_axes(axes, len(node.shape))
    count = prod(node.shape[axis] for axis in chosen)
    bits = count * (1 if value.dtype.kind == "b" else 8 * node.a.itemsize)
    most = np.iinfo(np.uint32).max
    if bits > most:
        raise OutOfRangeError(
            f"axis: up to {bits} bits a sum; expected {most} at most, as sums on a device hold"
            " (those of NumPy's arrays are added up on the host)"
        )
    kind = sum_type(dtype, bits)
    shape = tuple([n for axis, n in enumerate(node.shape) if axis not in chosen])
    if count:
        result = added(node, chosen)
    else:
        result = apply(Op.COPY, broadcast(Constant(bytes(_UINT32.itemsize)), shape))
    sums = value.derived(result, _UINT32)
    if keep:
        steps = iter(result.strides)
        strides = tuple([0 if axis in chosen else next(steps) for axis in range(len(node.shape))])
        kept = tuple([1 if axis in chosen else n for axis, n in enumerate(node.shape)])
        sums = sums.derived(window(result, 0, kept, strides))
    return cast(sums, kind)


def _as_ones(counts: Expression, width: int) -> Expression:
    """Elements of ``width`` bytes with as many ones as ``counts``, from 0 to 8 * width, say.

    The device has no adder for numbers, but one for bits.
    """
    if counts.itemsize > width:
        counts = narrowed(counts, width)
    else:
        counts = widened(counts, width, signed=False)
    # All ones, shifted left by n, end with n zeros; a shift by the width leaves nothing.
    return apply(Op.NOT, apply(Op.SHIFT_LEFT, Constant(b"\xff" * width), counts))
