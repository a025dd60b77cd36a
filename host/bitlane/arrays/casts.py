"""From one integer type to another on the device: bytes are moved, and signs spread by shifts.

A signed integer that grows gets copies of its sign, one that shrinks loses its high bytes, and a
truth value is whether a number is not 0: as NumPy does it.
"""

from typing import Any

import numpy as np

from bitlane_rtl.abi import Op

from ..expression.form import Constant, apply, narrowed, widened
from ..jobs.operands import DataTypeError
from .value import Value

__all__ = ["cast"]


def cast(value: Value, dtype: np.dtype[Any]) -> Value:
    """``value`` as ``dtype``, perhaps the same memory. Raises ``DataTypeError`` for floats."""
    if value.dtype == dtype:
        return value
    if "f" in (value.dtype.kind, dtype.kind):
        raise DataTypeError(
            f"astype: from {value.dtype} to {dtype}; expected integers or truth values, as floats"
            " take arithmetic (x.get().astype(...) converts on the host; view keeps the bits)"
        )
    node, size = value.node, dtype.itemsize
    if dtype.kind == "b":
        # 1 shifted right by a number is 1 for 0 alone.
        one = (1).to_bytes(node.itemsize, "little")
        zero = apply(Op.SHIFT_RIGHT, Constant(one), node)
        node = apply(Op.XOR, narrowed(zero, 1), Constant(b"\1"))
    elif size < node.itemsize:
        node = narrowed(node, size)
    else:
        node = widened(node, size, signed=value.dtype.kind == "i")
    return value.derived(node, dtype)
