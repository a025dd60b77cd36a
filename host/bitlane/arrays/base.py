"""What `Array` and its operators share: the value that an array has, and how it gets another."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..compiler.nodes import broadcast
from ..errors import DataTypeError, ShapeError
from ..streaming.operands import as_array, expect_supported, shown
from .elementwise import Operand, cast, placed
from .transfers import download
from .value import Value, overwrite


class Base:
    """An object that has a value, which operations in place replace or overwrite."""

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: Value) -> None:
        self._value = value


def value_of(x: Base) -> Value:
    """The value that an array has now."""
    return x._value


def operand(name: str, x: Any) -> Operand:
    """What ``x`` is to an operation. Raises as `as_array` does."""
    if isinstance(x, Base):
        return value_of(x)
    return x if type(x) is int else as_array(name, x)


def stored_in(out: Any, value: Value) -> Any:
    """``out``, an array here or on the host, after ``value`` has been stored there.

    Nobody else has ``value``: it may be computed into the memory of ``out``. Raises
    ``DataTypeError`` unless NumPy's casting "same_kind" allows it, or ``ShapeError``.
    """
    if not isinstance(out, Base | np.ndarray):
        raise DataTypeError(
            f"out: of type {type(out).__name__}; expected a bitlane.Array or an ndarray"
        )
    dtype = value_of(out).dtype if isinstance(out, Base) else out.dtype
    shape = value_of(out).shape if isinstance(out, Base) else out.shape
    if not np.can_cast(value.dtype, dtype, "same_kind"):
        raise DataTypeError(
            f"out: data type {dtype} for a result of {value.dtype}; expected one that holds it"
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ShapeError("out: the array is read-only")
    try:
        broadcast(value.node, shape)
    except ShapeError:
        raise ShapeError(f"out: shape {shape}; expected {value.shape}") from None
    if isinstance(out, Base):
        result = placed(value_of(out).home, "result", value, dtype)
        if out._value.pending and result.shape == shape:
            # Nothing shows its memory yet: there is none.
            out._value = result
        else:
            overwrite(out._value, result, fresh=True)
    else:
        np.copyto(out, download(cast(value, dtype)))
    return out


def supported(dtype: DTypeLike) -> np.dtype[Any]:
    """``dtype`` as NumPy's, in the native byte order. Raises ``DataTypeError``."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise DataTypeError(f"dtype: {shown(dtype)}; expected a data type") from None
    expect_supported("dtype", kind)
    return kind.newbyteorder("=")
