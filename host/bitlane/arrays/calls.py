"""``bit_xor`` and its like, where an operand or the output is an array on a device.

As the operators are, except that floats are taken as their bits.
"""

from typing import Any

from bitlane_rtl.abi import Op

from ..jobs.operands import count_type
from ..jobs.promotion import Casting, expect_alike, kind_of
from .base import Base, operand, stored_in, value_of
from .operations import copied, counted, inverted, on_device, operate
from .value import Home

__all__ = ["called"]


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
