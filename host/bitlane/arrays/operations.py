"""The operations on values: which type they meet in, and the expression that they make.

Nothing is executed here.
"""

from typing import Any, TypeAlias

import numpy as np

from bitlane_rtl.abi import SHIFT_OPS, Op

from ..errors import OtherDeviceError
from ..expression.form import Constant, apply
from ..jobs.operands import AnyArray, DataTypeError, fitted
from ..jobs.promotion import NEGATED, kind_of, meeting_type
from .casts import cast
from .transfers import constant, upload
from .value import Home, Value

__all__ = [
    "Operand",
    "converted",
    "copied",
    "counted",
    "inverted",
    "on_device",
    "operate",
    "placed",
]

Operand: TypeAlias = "Value | AnyArray | int"


def operate(home: Home, op: Op, a: Operand, b: Operand, *, encoding: bool = False) -> Value:
    """``op`` of two operands, in the type in which they meet in NumPy.

    With ``encoding``, the bits of floats of one type count, too. Raises ``DataTypeError``,
    ``OutOfRangeError``, ``ShapeError``, ``OtherDeviceError`` or what `upload` does.
    """
    dtype = meeting_type(op, kind_of(a), kind_of(b), encoding=encoding)
    one, other = (placed(home, name, x, dtype) for name, x in (("a", a), ("b", b)))
    truth = dtype.kind == "b"
    plain = NEGATED.get(op, op) if truth else op
    flags = (op in SHIFT_OPS, op is Op.SHIFT_RIGHT and dtype.kind == "i")
    result = Value(home, dtype, apply(plain, one.node, other.node, flags=flags), (one, other))
    return inverted(result) if plain is not op else result


def inverted(value: Value) -> Value:
    """All bits the other way round; of truth values, the truth."""
    if value.dtype.kind == "b":
        return value.derived(apply(Op.XOR, value.node, Constant(b"\1")))
    return value.derived(apply(Op.NOT, value.node))


def counted(value: Value, dtype: np.dtype[Any]) -> Value:
    """How many bits of each element are 1, as ``dtype``, uint8 or uint32."""
    return value.derived(apply(Op.COUNT, value.node, itemsize=dtype.itemsize), dtype)


def copied(value: Value) -> Value:
    """The same elements in memory of their own."""
    return value.derived(apply(Op.COPY, value.node))


def placed(home: Home, name: str, operand: Operand, dtype: np.dtype[Any]) -> Value:
    """``operand`` on the device of ``home`` as ``dtype``; what the host has is sent.

    Raises ``OtherDeviceError`` for what is on another, and as `operate` does.
    """
    if isinstance(operand, Value):
        if operand.home is not home:
            there, here = repr(operand.home), repr(home)
            if there == here:
                there, here = f"another device that is also {there}", "the same device"
            raise OtherDeviceError(
                f"{name}: an array on {there}; expected one on {here}"
                " (device.asarray copies it there)"
            )
        return cast(operand, dtype)
    array = converted(name, operand, dtype)
    return constant(home, array) if not array.ndim else upload(home, array)


def on_device(home: Home, name: str, operand: Operand) -> Value:
    """``operand`` on the device of ``home`` in its own type."""
    return placed(home, name, operand, np.dtype(getattr(operand, "dtype", np.int64)))


def converted(name: str, given: AnyArray | int, dtype: np.dtype[Any]) -> AnyArray:
    """What the host has, as it is to be sent. Raises ``DataTypeError`` or ``OutOfRangeError``."""
    if isinstance(given, int):
        return fitted(name, given, dtype) if dtype.kind in "ui" else np.array(given).astype(dtype)
    if given.dtype.kind == "f" and dtype.kind != "f":
        raise DataTypeError(
            f"{name}: data type {given.dtype} for {dtype}; expected integers or truth values"
            " (convert it with astype, or view its bits)"
        )
    return given.astype(dtype, copy=False)
