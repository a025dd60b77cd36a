"""The type that operands of different types meet in, as NumPy has it.

Looks at types alone, never at an element.
"""

from typing import Any, Final, TypeAlias

import numpy as np

from bitlane_rtl.abi import Op

from .operands import DataTypeError

__all__ = ["Kind", "kind_of", "meeting_type"]

Kind: TypeAlias = "np.dtype[Any] | type[int]"
"""The type of an operand; ``int`` for a Python integer, which takes that of the other."""

_FUNCTIONS: Final = {
    Op.AND: np.bitwise_and,
    Op.NAND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.NOR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
    Op.XNOR: np.bitwise_xor,
    Op.SHIFT_LEFT: np.left_shift,
    Op.SHIFT_RIGHT: np.right_shift,
}


def kind_of(value: object) -> Kind:
    """The type of an operand: an array, what NumPy makes one of, or a Python integer.

    Members of an ``IntEnum`` and NumPy's scalars have a type of their own, as NumPy has it.
    """
    if type(value) is int:
        return int
    return getattr(value, "dtype", None) or np.asarray(value).dtype


def meeting_type(op: Op, a: Kind, b: Kind, *, encoding: bool) -> np.dtype[Any]:
    """The type in which NumPy computes ``op``, which has two operands; of the native byte order.

    With ``encoding``, two floats of one type meet in it, of which logic takes the bits.
    Raises ``DataTypeError`` where NumPy has no such type.
    """
    if encoding and a == b and isinstance(a, np.dtype) and a.kind == "f" and op <= Op.NOT:
        return a.newbyteorder("=")
    try:
        resolved = _FUNCTIONS[op].resolve_dtypes((a, b, None))
    except TypeError:
        names = [x.__name__ if isinstance(x, type) else str(x) for x in (a, b)]
        raise DataTypeError(
            f"a, b: data types {names[0]} and {names[1]}; expected integers or truth values that an"
            " integer type can hold together (astype converts one; for the bits of floats, view"
            " them as integers)"
        ) from None
    return resolved[-1].newbyteorder("=")
