"""Functions that create arrays on a device, from arrays on the host or from numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arguments.operands import as_array, as_integer, expect_supported
from ..compiler.nodes import apply, broadcast
from ..errors import (
    BitlaneError,
    CopyError,
    DataTypeError,
    ExchangeError,
    OutOfRangeError,
    ShapeError,
)
from .array import Array, as_operand
from .elementwise import as_dtype, cast_on_host, to_device
from .strided import as_shape
from .transfers import reserve, upload
from .value import DeviceLike


def asarray(
    device: DeviceLike, x: ArrayLike, dtype: DTypeLike | None = None, *, copy: bool | None = None
) -> Array:
    """Return ``x`` on ``device``; see `Device.asarray`."""
    if isinstance(x, Array):
        result = x if x.device is device else asarray(device, x.get())
        if dtype is None or as_dtype(dtype) == result.dtype:
            return result.copy() if copy and result is x else result
        if copy is False:
            raise CopyError(f"copy: False; {x.dtype} as {dtype} takes a copy")
        return result.astype(dtype)
    if copy is False:
        raise CopyError("copy: False; an array on the host comes to the device as a copy")
    array = as_array("x", x)
    kind = array.dtype.newbyteorder("=") if dtype is None else as_dtype(dtype)
    if not array.size and not hasattr(x, "dtype"):
        # Without elements, NumPy's type of a list is float64.
        array = array.astype(kind)
    return Array(upload(device, cast_on_host("x", array, kind)))


def from_dlpack(device: DeviceLike, x: Any, *, copy: bool | None = None) -> Array:
    """Copy an object with ``__dlpack__`` to ``device``; see `Device.from_dlpack`."""
    if not hasattr(x, "__dlpack__"):
        raise DataTypeError(f"x: of type {type(x).__name__}; expected one that has __dlpack__")
    here = isinstance(x, Array) and x.device is device
    if copy is False and not here:
        # The standard asks for a BufferError, which CopyError is not.
        raise ExchangeError("copy: False; elements elsewhere come to the device as a copy")
    try:
        given = x if isinstance(x, Array) else np.from_dlpack(x)
    except BufferError as error:
        raise ExchangeError(f"x: of type {type(x).__name__}; {error}") from None
    return asarray(device, given, copy=copy)


def empty(device: DeviceLike, shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """Return elements with any content; booleans, whose bytes are 0 or 1, are all False."""
    kind = as_dtype(dtype)
    if kind.kind == "b":
        return full(device, shape, False, kind)
    return Array(reserve(device, as_shape(shape), kind))


def full(
    device: DeviceLike, shape: int | Sequence[int], fill: Any, dtype: DTypeLike | None
) -> Array:
    """Return elements that are all ``fill``, a number or an array on the device without axes."""
    given = as_operand("fill_value", fill)
    kind = as_dtype(dtype if dtype is not None else np.asarray(given).dtype)
    one = to_device(device, "fill_value", given, kind)
    node = apply(Op.COPY, broadcast(one.node, as_shape(shape)))
    return Array(one.derived(node))


def eye(device: DeviceLike, rows: int, columns: int | None, k: int, dtype: DTypeLike) -> Array:
    """Return elements that are 1 where the column is the row plus ``k``, else 0."""
    offset = as_integer("k", k)
    height, width = as_shape((rows, rows if columns is None else columns))
    result = full(device, (height, width), 0, dtype)
    first = (max(0, -offset), max(0, offset))
    count = min(height - first[0], width - first[1])
    if count > 0:
        start = first[0] * width + first[1]
        diagonal = result.reshape(-1)[start : start + (count - 1) * (width + 1) + 1 : width + 1]
        diagonal[...] = np.ones((), diagonal.dtype)
    return result


def arange(device: DeviceLike, start: Any, stop: Any, step: Any, dtype: DTypeLike | None) -> Array:
    """Send the result of ``np.arange``. Raises as `linspace` does."""
    limits = (0, start, step) if stop is None else (start, stop, step)
    return _send(device, "arange", lambda: np.arange(*limits, dtype=_optional_dtype(dtype)))


def linspace(
    device: DeviceLike, start: Any, stop: Any, num: int, dtype: DTypeLike | None, *, endpoint: bool
) -> Array:
    """Send the result of ``np.linspace``.

    Raises ``DataTypeError``, ``OutOfRangeError`` or ``ShapeError``.
    """
    kind = _optional_dtype(dtype)
    count = as_integer("linspace: num", num)
    if count < 0:
        raise ShapeError(f"linspace: num: {count}; expected 0 or more")
    return _send(
        device, "linspace", lambda: np.linspace(start, stop, count, endpoint=endpoint, dtype=kind)
    )


def _optional_dtype(dtype: DTypeLike | None) -> np.dtype[Any] | None:
    return None if dtype is None else as_dtype(dtype)


def _send(device: DeviceLike, name: str, make: Callable[[], AnyArray]) -> Array:
    """Return the array that ``make`` returns, sent to the device.

    Errors of NumPy are raised as errors of bitlane that name ``name``.
    """
    device.expect_open()
    try:
        array = make()
    except BitlaneError:
        raise
    except TypeError as error:
        raise DataTypeError(f"{name}: {error}; expected numbers") from None
    except ZeroDivisionError:
        raise ShapeError(f"{name}: a step of 0; expected another") from None
    except OverflowError as error:
        raise OutOfRangeError(f"{name}: {error}; expected numbers that the type holds") from None
    except (ValueError, ArithmeticError, MemoryError) as error:
        raise ShapeError(f"{name}: {error}; expected a range that memory holds") from None
    expect_supported(name, array.dtype)
    return asarray(device, array)
