"""Elements chosen by truth values: ``np.where``, and the option ``where`` of other functions."""

from typing import Any, Final

import numpy as np

from bitlane_rtl.abi import Op

from ..arguments.promotion import promoted_type, type_or_int
from ..compiler import Constant, Expression, apply, widen
from ..errors import OutOfRangeError
from ..lowering import Options
from .elementwise import Operand, apply_typed, as_value, expect_shapes, to_device
from .truth import Compared, is_true
from .value import DeviceLike, Value

_SEVEN: Final = Constant(b"\7")

MOST_PASSES: Final = 8
"""Passes that `choose` takes at most."""


def select_elements(device: DeviceLike, condition: Operand, a: Compared, b: Compared) -> Value:
    """Return the elements of ``a`` where ``condition`` is not 0, else those of ``b``.

    In the type in which both meet, floats of one type included; up to eight passes. Raises
    ``DataTypeError``, ``OutOfRangeError`` or ``ShapeError``.
    """
    p, q = _beside(a, b), _beside(b, a)
    dtype = promoted_type(Op.XOR, type_or_int(p), type_or_int(q), encoding=True)
    expect_shapes(condition, p, q)
    x, y = to_device(device, "a", p, dtype), to_device(device, "b", q, dtype)
    return choose(is_true(as_value(device, "condition", condition)), x, y)


def choose(chosen: Value, x: Value, y: Value) -> Value:
    """Return the elements of ``x`` where ``chosen`` is true, else those of ``y``, of one type.

    Raises ``ShapeError`` if they do not broadcast.
    """
    node = choose_typed(x.dtype, chosen.node, x.node, y.node)
    return Value(x.device, x.dtype, node, (chosen, x, y))


def choose_typed(
    dtype: np.dtype[Any], chosen: Expression, x: Expression, y: Expression
) -> Expression:
    """Return `choose` of the expressions of elements of ``dtype``. Raises ``ShapeError``."""
    differences = apply(Op.AND, apply(Op.XOR, x, y), _mask_of(dtype, chosen))
    return apply(Op.XOR, y, differences)


def replace_unchosen(value: Value, chosen: Value, *, ones: bool) -> Value:
    """Return ``value`` with all bits 0 where ``chosen`` is false; with ``ones``, all bits 1.

    ``chosen`` broadcasts to the shape of ``value``.
    """
    mask = _mask_of(value.dtype, chosen.node)
    if ones:
        node = apply(Op.OR, value.node, apply_typed(Op.NOT, value.dtype, mask))
    else:
        node = apply(Op.AND, value.node, mask)
    return Value(value.device, value.dtype, node, (value, chosen))


def _mask_of(dtype: np.dtype[Any], chosen: Expression) -> Expression:
    """Return elements of ``dtype`` with all bits that it has 1 where ``chosen`` is true, else 0."""
    if dtype.kind == "b":
        return chosen
    # The truth moves to the sign and back, which sets all bits of the byte or none.
    signs = apply(Op.SHIFT_LEFT, chosen, _SEVEN)
    filled = apply(Op.SHIFT_RIGHT, signs, _SEVEN, options=Options.of(arithmetic=True))
    return widen(filled, dtype.itemsize, signed=True)


def _beside(x: Compared, other: Compared) -> Operand:
    """Return ``x``, a number of Python's beside floats as one of them."""
    dtype = getattr(other, "dtype", None)
    if isinstance(x, int | float) and dtype is not None and dtype.kind == "f":
        try:
            return np.asarray(x, dtype)
        except OverflowError as error:
            raise OutOfRangeError(f"x: {error}; expected a number that {dtype} holds") from None
    if isinstance(x, float) or (isinstance(x, int) and isinstance(other, float)):
        return np.asarray(x, np.float64)
    return x
