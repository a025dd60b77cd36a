"""Type promotion of two operands by NumPy's rules.

Looks at types alone; at an element only to fit a Python integer into a type.
"""

from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from bitlane_rtl.abi import LOGIC_OPS, SHIFT_OPS, Op

from .._typing import AnyArray
from ..errors import DataTypeError
from ..text import printable
from .operands import as_array, expect_integers, fit_integer, little_endian

Casting: TypeAlias = Literal["no", "safe"]
"""Whether operands of two types are refused, or meet in one that holds both."""

TypeOrInt: TypeAlias = np.dtype[Any] | type[int]
"""The type of an operand; ``int`` for a Python integer, which takes that of the other."""

NEGATED: Final = {Op.NAND: Op.AND, Op.NOR: Op.OR, Op.XNOR: Op.XOR}
"""Operations whose result is that of another, inverted: truth values are not inverted by bits."""

TRUE: Final = np.array(True)
"""Truth values are inverted by XOR with it."""

_FUNCTIONS: Final = {
    Op.SHIFT_LEFT: np.left_shift,
    Op.SHIFT_RIGHT: np.right_shift,
}
"""NumPy's functions for operations that are not logic."""

_LOGIC: Final = np.bitwise_and
"""NumPy's function whose types all logic has."""


def type_or_int(value: object) -> TypeOrInt:
    """The type of an operand: an array, what NumPy makes one of, or a Python integer.

    Members of an ``IntEnum`` and NumPy's scalars have the type that NumPy gives them.
    """
    if type(value) is int:
        return int
    return getattr(value, "dtype", None) or np.asarray(value).dtype


def as_pair(
    op: Op, a: ArrayLike, b: ArrayLike, casting: Casting
) -> tuple[AnyArray, AnyArray, np.dtype[Any]]:
    """Two operands, each in its own type, and their result type.

    A Python integer has the result type. Raises ``DataTypeError`` or ``OutOfRangeError``.
    """
    _expect_known(casting)
    if type(a) is int and type(b) is not int:
        second = as_array("b", b)
        dtype = _beside(op, second)
        return fit_integer("a", a, dtype), second, dtype
    first = as_array("a", a)
    if op in SHIFT_OPS:
        expect_integers(first)
    if type(b) is int and type(a) is not int:
        dtype = _beside(op, first)
        return first, fit_integer("b", b, dtype), dtype
    second = first if b is a else as_array("b", b)
    if first.dtype == second.dtype and (op in LOGIC_OPS or first.dtype.kind in "ui"):
        return first, second, first.dtype
    expect_same_type(first.dtype, second.dtype, casting)
    return first, second, promoted_type(op, first.dtype, second.dtype, encoding=True)


def _beside(op: Op, array: AnyArray) -> np.dtype[Any]:
    """The type that a Python integer takes beside ``array``; `fit_integer` refuses floats."""
    if array.dtype.kind == "f":
        return array.dtype
    return promoted_type(op, array.dtype, int, encoding=True)


def expect_same_type(a: TypeOrInt, b: TypeOrInt, casting: Casting) -> None:
    """Raises ``DataTypeError`` for two types if ``casting`` says that they do not meet."""
    _expect_known(casting)
    if casting == "safe":
        return
    if len({x.newbyteorder("<") for x in (a, b) if isinstance(x, np.dtype)}) == 2:
        raise DataTypeError(
            f"a, b: data types {a} and {b}; expected the same type, as casting is 'no': convert one"
            " with astype"
        )


def _expect_known(casting: object) -> None:
    if not isinstance(casting, str) or casting not in ("no", "safe"):
        given = printable(f"{casting!r:.40}")
        raise DataTypeError(f"casting: {given}; expected 'no' or 'safe'")


def promoted_type(op: Op, a: TypeOrInt, b: TypeOrInt, *, encoding: bool) -> np.dtype[Any]:
    """The type in which NumPy computes ``op`` of two operands, of the native byte order.

    With ``encoding``, two floats of one type meet in it, of which logic takes the bits.
    Raises ``DataTypeError`` where NumPy has no such type.
    """
    own = "uif" if encoding and op in LOGIC_OPS else "ui"
    if (
        isinstance(a, np.dtype)
        and a.kind in own
        and isinstance(b, np.dtype)
        and little_endian(a) == little_endian(b)
    ):
        return a.newbyteorder("=")
    try:
        resolved = _FUNCTIONS.get(op, _LOGIC).resolve_dtypes((a, b, None))
    except TypeError:
        names = [x.__name__ if isinstance(x, type) else str(x) for x in (a, b)]
        raise DataTypeError(
            f"a, b: data types {names[0]} and {names[1]}; expected integers or truth values that an"
            " integer type can hold together (astype converts one; for the bits of floats, view"
            " them as integers)"
        ) from None
    return resolved[-1].newbyteorder("=")
