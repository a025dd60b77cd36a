"""NumPy's universal functions on arrays (NEP 13), and ``bit_xor`` and its like with arrays."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bitlane_rtl.abi import Op

from ..errors import DataTypeError, NotOfferedError
from ..streaming.operands import count_type
from ..streaming.promotion import Casting, expect_alike, kind_of
from .base import Base, operand, stored_in, value_of
from .elementwise import copied, counted, inverted, on_device, operate, reduced, summed
from .value import Home, Value

_TWO: Final[Mapping[np.ufunc, Op]] = {
    np.bitwise_and: Op.AND,
    np.bitwise_or: Op.OR,
    np.bitwise_xor: Op.XOR,
    np.left_shift: Op.SHIFT_LEFT,
    np.right_shift: Op.SHIFT_RIGHT,
}
_INVERT: Final = np.invert
_COUNT: Final = np.bitwise_count
_REDUCIBLE: Final = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
_DEFAULTS: Final = {"where": True, "casting": "same_kind", "order": "K", "subok": True}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    """What ``Array.__array_ufunc__`` gives.

    Raises ``NotOfferedError``, by name, for another function, method or option; and what the
    operations do.
    """
    name = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
    (out,) = options.pop("out", None) or (None,)
    like = next(x for x in (*inputs, out) if isinstance(x, Base))
    home = value_of(like).home
    if method == "__call__" and ufunc in _TWO:
        a, b = (operand(side, x) for side, x in zip("ab", inputs, strict=True))
        result = operate(home, _TWO[ufunc], a, b)
    elif method == "__call__" and ufunc in (_INVERT, _COUNT):
        x = on_device(home, "x", operand("x", inputs[0]))
        result = _inverted(x) if ufunc is _INVERT else _counted(x)
    elif method == "reduce" and ufunc in _REDUCIBLE:
        axes, keep = options.pop("axis", 0), bool(options.pop("keepdims", False))
        x = on_device(home, "x", operand("x", inputs[0]))
        result = reduced(_TWO[ufunc], x, axes, keep=keep)
    elif method == "reduce" and ufunc is np.add:
        axes, keep = options.pop("axis", 0), bool(options.pop("keepdims", False))
        x = on_device(home, "x", operand("x", inputs[0]))
        result = summed(x, axes, options.pop("dtype", None), keep=keep)
    else:
        raise NotOfferedError(
            f"{name}: not on a device; np.asarray(x) brings the elements to the host for it"
        )
    for option, value in options.items():
        if value is not None and value is not _DEFAULTS.get(option, np._NoValue):
            raise NotOfferedError(
                f"{name}: {option} is not offered on a device; slices, astype and out are"
            )
    return type(like)(result) if out is None else stored_in(out, result)


def _inverted(x: Value) -> Value:
    if x.dtype.kind == "f":
        raise DataTypeError(
            f"x: data type {x.dtype}; ~ expects integers or truth values (bitlane.bit_not takes"
            " the bits of floats)"
        )
    return inverted(x)


def _counted(x: Value) -> Value:
    if x.dtype.kind not in "ub":
        raise DataTypeError(
            f"np.bitwise_count: data type {x.dtype}; of a signed integer it counts the absolute"
            " value, which takes arithmetic (bitlane.bit_count counts the bits of the encoding)"
        )
    return counted(x, np.dtype(np.uint8))


def called(
    home: Home, op: Op, *given: Any, out: Any, casting: Casting = "safe", dtype: Any = None
) -> Any:
    """``op`` of one or two operands on ``home``: an array there, or ``out``.

    ``dtype``: that of counts. Raises what `operate` and `stored_in` do.
    """
    home.expect_open()
    operands = [operand(name, x) for name, x in zip("ab", given, strict=False)]
    if op.reads_b:
        a, b = operands
        expect_alike(kind_of(a), kind_of(b), casting)
        result = operate(home, op, a, b, encoding=True)
    else:
        x = on_device(home, "a", operands[0])
        if op is Op.COUNT:
            kind = value_of(out).dtype if dtype is None and isinstance(out, Base) else dtype
            result = counted(x, count_type(kind, out))
        else:
            result = inverted(x) if op is Op.NOT else copied(x)
    if out is not None:
        return stored_in(out, result)
    return type(next(x for x in given if isinstance(x, Base)))(result)
