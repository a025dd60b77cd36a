"""Operands and outputs of functions of arrays: on a device or on the host."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments.operands import as_array, expect_supported
from ..compiler.nodes import broadcast
from ..errors import DataTypeError, ShapeError
from .base import ArrayBase
from .elementwise import Operand, cast, to_device
from .transfers import download
from .truth import Compared
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


def store_result(out: Any, value: Value) -> Any:
    """Write ``value`` to ``out``, an array here or on the host; return ``out``.

    Nobody else has ``value``: it may be computed into the memory of ``out``. Raises
    ``DataTypeError`` unless NumPy's casting "same_kind" allows it, or ``ShapeError``.
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
    try:
        broadcast(value.node, out.shape)
    except ShapeError:
        raise ShapeError(f"out: shape {out.shape}; expected {value.shape}") from None
    if isinstance(out, np.ndarray):
        np.copyto(out, download(cast(value, kind)))
        return out
    result = to_device(out.device, "result", value, kind)
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
