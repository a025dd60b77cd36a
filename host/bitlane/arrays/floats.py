"""IEEE 754's rules for elements that are compared and tested, as expressions of their bits.

A zero has two encodings, and a NaN differs from itself: masks and shifts decide both.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from bitlane_rtl.abi import Op

from ..compiler import Constant, Expression, apply, truth_of


class _Fields(NamedTuple):
    """Masks of the fields of a float type."""

    sign: Constant
    exponent: Constant
    mantissa: Constant
    no_exponent: Constant
    magnitude: Constant
    """All but the sign."""


def _fields_of(dtype: np.dtype[Any]) -> _Fields:
    sign, mantissa = 1 << (8 * dtype.itemsize - 1), (1 << np.finfo(dtype).nmant) - 1
    masks = (sign, sign - 1 - mantissa, mantissa, sign + mantissa, sign - 1)
    return _Fields(*(Constant(mask.to_bytes(dtype.itemsize, "little")) for mask in masks))


_FIELDS: Final = {
    dtype: _fields_of(dtype) for dtype in map(np.dtype, (np.float16, np.float32, np.float64))
}


def magnitude(node: Expression, dtype: np.dtype[Any]) -> Expression:
    """Return elements of the same width that are 0 where a number of ``dtype`` is 0."""
    return apply(Op.AND, node, _FIELDS[dtype].magnitude) if dtype.kind == "f" else node


def is_nan(node: Expression, dtype: np.dtype[Any], *, negate: bool = False) -> Expression:
    """Return whether each float is a NaN, or with ``negate`` whether it is not; three passes."""
    fields = _FIELDS[dtype]
    # 0 if all bits of the exponent are 1; else a count that shifts all bits out.
    finite = apply(Op.NOR, node, fields.no_exponent)
    shifted = apply(Op.SHIFT_LEFT, node, finite)
    return truth_of(apply(Op.AND, shifted, fields.mantissa), negate=negate)


def is_finite(node: Expression, dtype: np.dtype[Any]) -> Expression:
    """Return whether each float is neither infinite nor a NaN; two passes."""
    return truth_of(apply(Op.NOR, node, _FIELDS[dtype].no_exponent))


def is_infinite(node: Expression, dtype: np.dtype[Any]) -> Expression:
    """Return whether each float is infinite; two passes."""
    return truth_of(apply(Op.XOR, magnitude(node, dtype), _FIELDS[dtype].exponent), negate=True)


def is_equal(
    a: Expression, b: Expression, dtype: np.dtype[Any], *, negate: bool = False
) -> Expression:
    """Return whether floats are equal, or with ``negate`` whether they differ; eight passes.

    They are equal if both are 0, or if their bits are the same and are not a NaN's.
    """
    if a is b:
        return is_nan(a, dtype, negate=not negate)
    either = apply(Op.OR, a, b)
    # Where both have the same bits, ``either`` has these; where both are 0, it is not a NaN.
    nan = is_nan(either, dtype, negate=not negate)
    differ = truth_of(apply(Op.XOR, a, b), negate=not negate)
    nonzero = truth_of(magnitude(either, dtype), negate=not negate)
    if negate:
        return apply(Op.OR, apply(Op.AND, differ, nonzero), nan)
    return apply(Op.OR, apply(Op.AND, differ, nan), nonzero)
