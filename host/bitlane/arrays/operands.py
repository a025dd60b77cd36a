"""Operands and outputs of functions of arrays: on a device or on the host."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments.operands import as_array, expect_supported
from ..compiler import broadcast
from ..errors import DataTypeError, OutOfRangeError, ShapeError
from ..lowering import broadcast_shapes
from .base import ArrayBase
from .elementwise import (
    Operand,
    as_value,
    cast,
    expect_shapes,
    expect_within,
    to_device,
)
from .masks import choose, replace_unchosen
from .transfers import download
from .truth import Compared, is_true
from .value import DeviceLike, Value, overwrite


def is_no_number(x: object) -> bool:
    """Return whether ``x`` is a thing that no element equals."""
    return x is None or isinstance(x, str | bytes)


def as_compared(inputs: Sequence[Any]) -> list[Compared]:
    """Return operands, of which a Python float has no type of its own."""
    names = zip("ab", inputs, strict=False)
    return [x if type(x) is float else as_operand(name, x) for name, x in names]


def device_of(*operands: Any) -> DeviceLike:
    """Return the device of the first array: one at least is an array on a device."""
    return next(x for x in operands if isinstance(x, ArrayBase)).device


def as_operands(inputs: Sequence[Any]) -> list[Operand]:
    return [as_operand(name, x) for name, x in zip("ab", inputs, strict=False)]


def as_operand(name: str, x: Any) -> Operand:
    """Return the value of an array, a Python integer, or an array of NumPy's.

    Raises as `as_array` does.
    """
    if isinstance(x, ArrayBase):
        return x._value
    return x if type(x) is int else as_array(name, x)


def as_source(name: str, x: Any, dtype: np.dtype[Any]) -> Operand:
    """Return values to be written over elements of ``dtype``, as `as_operand` does.

    Python integers in lists have to fit ``dtype``, or are rounded to it by way of float64, as in
    NumPy; elements of arrays are cast later.
    Raises ``OutOfRangeError``, and as `as_operand`.
    """
    given = as_operand(name, x)
    if not isinstance(x, list | tuple) or not isinstance(given, np.ndarray):
        return given
    if given.size and (given.dtype.kind not in "ui" or dtype.kind not in "uif"):
        return given
    try:
        return np.asarray(x, dtype)
    except OverflowError as error:
        raise OutOfRangeError(f"{name}: {error}; expected integers of {dtype}") from None


def as_mask(device: DeviceLike, where: "Operand | None") -> Value | None:
    """Return the `where_operand` as truth values on ``device``. Raises as `as_value`."""
    return None if where is None else is_true(as_value(device, "where", where))


def where_operand(where: Any) -> "Operand | None":
    """Return the option ``where``, which is not sent yet, or None if it is True.

    Raises as `as_operand`, and ``DataTypeError`` for an array of anything but truth values.
    """
    if where is True or where is np._NoValue:
        return None
    if isinstance(where, ArrayBase | np.ndarray) and where.dtype.kind != "b":
        raise DataTypeError(f"where: data type {where.dtype}; expected truth values (where != 0)")
    return as_operand("where", where)


def expect_output_shape(out: Any, operands: Sequence[Any], where: "Operand | None") -> None:
    """Raise ``ShapeError`` if the result does not fit ``out``, before an operand is sent.

    Without ``out``, the operands and ``where`` have to broadcast.
    """
    shapes = [expect_shapes(*operands), getattr(where, "shape", ())]
    if out is None:
        broadcast_shapes(*shapes)
        return
    target = expect_output(out).shape
    for shape in shapes:
        try:
            expect_within("out", shape, target)
        except ShapeError:
            raise ShapeError(f"out: shape {target}; expected {shape}") from None


def masked(value: Value, where: Any, *, ones: bool) -> Value:
    """Return ``value`` with all bits 0, or 1 with ``ones``, of elements that ``where`` leaves out.

    Raises as `where_operand` and `as_mask`, and ``ShapeError`` unless it broadcasts to ``value``.
    """
    given = where_operand(where)
    expect_within("where", getattr(given, "shape", ()), value.shape)
    chosen = as_mask(value.device, given)
    return value if chosen is None else replace_unchosen(value, chosen, ones=ones)


def store_result(out: Any, value: Value, chosen: Value | None = None) -> Any:
    """Write ``value`` to ``out``, an array here or on the host; return ``out``.

    Only the elements where ``chosen``, truth values, is true. Nobody else has ``value``: it may be
    computed into the memory of ``out``. Raises ``DataTypeError`` unless NumPy's casting "same_kind"
    allows it, or ``ShapeError``.
    """
    expect_supported("out", expect_output(out).dtype)
    kind = out.dtype.newbyteorder("=")
    converts = value.dtype != kind and "f" in (value.dtype.kind, kind.kind)
    if converts or not np.can_cast(value.dtype, kind, "same_kind"):
        raise DataTypeError(
            f"out: data type {out.dtype} for a result of {value.dtype}; expected one that holds it,"
            " and no float beside integers"
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ShapeError("out: the array is read-only")
    for each in (value,) if chosen is None else (value, chosen):
        try:
            broadcast(each.node, out.shape)
        except ShapeError:
            raise ShapeError(f"out: shape {out.shape}; expected {each.shape}") from None
    if isinstance(out, np.ndarray):
        where = True if chosen is None else download(chosen)
        np.copyto(out, download(cast(value, kind)), where=where)
        return out
    result = to_device(out.device, "result", value, kind)
    if chosen is not None:
        result = choose(chosen, result, out._value)
    if out.pending and result.shape == out.shape:
        # Nothing shows its memory yet: there is none.
        out._value = result
    else:
        overwrite(out._value, result, fresh=True)
    return out


def expect_output(out: Any) -> Any:
    """Return ``out``, an array. Raises ``DataTypeError``."""
    if isinstance(out, ArrayBase | np.ndarray):
        return out
    raise DataTypeError(
        f"out: of type {type(out).__name__}; expected a bitlane.Array or an ndarray"
    )
