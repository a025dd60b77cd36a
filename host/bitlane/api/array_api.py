"""The Python array API standard for arrays on a device, as far as bits and bytes go.

The bitwise functions, tests of elements, sums, data types, creation, and manipulation: sums are
the only arithmetic. Anything else is refused by name. Functions that make an array take
``device=``; None is the default one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sys import modules
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy import e, iinfo, inf, isdtype, nan, newaxis, pi

from bitlane_rtl.abi import Op

from .. import arrays
from .._typing import AnyArray
from ..arguments.axes import Axes
from ..arguments.operands import MOST_AXES, as_integer, expect_supported
from ..arrays import Array, DeviceLike, creation, expect_device
from ..arrays.array import dispatch_elementwise, dispatch_predicate
from ..arrays.elementwise import as_dtype
from ..arrays.functions import count_nonzero as _count_nonzero
from ..arrays.functions import meshgrid, repeat, take_along_axis, tile, type_of
from ..arrays.functions import take as _take
from ..arrays.functions import where as _where
from ..arrays.joins import broadcast_arrays, roll, stack
from ..arrays.joins import concatenate as concat
from ..arrays.shapes import expand_dims, flip, moveaxis, squeeze, unstack
from ..arrays.strided import as_shape
from ..errors import (
    BitlaneError,
    DataTypeError,
    MissingError,
    NotOfferedError,
    OutOfRangeError,
    ShapeError,
)
from .default import default_device

__array_api_version__ = "2024.12"

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "all",
    "any",
    "arange",
    "asarray",
    "astype",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "concat",
    "count_nonzero",
    "e",
    "empty",
    "empty_like",
    "equal",
    "expand_dims",
    "eye",
    "finfo",
    "flip",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "linspace",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "nan",
    "newaxis",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "positive",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "signbit",
    "squeeze",
    "stack",
    "sum",
    "take",
    "take_along_axis",
    "tile",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unstack",
    "where",
    "zeros",
    "zeros_like",
]

Shape = int | Sequence[int]
DType = np.dtype[Any]

bool = np.dtype(np.bool_)
int8, int16 = np.dtype(np.int8), np.dtype(np.int16)
int32, int64 = np.dtype(np.int32), np.dtype(np.int64)
uint8, uint16 = np.dtype(np.uint8), np.dtype(np.uint16)
uint32, uint64 = np.dtype(np.uint32), np.dtype(np.uint64)
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_TYPES = [bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64]


def supporting(api_version: str | None) -> ModuleType:
    """Return this module, if it has ``api_version``. Raises ``NotOfferedError``."""
    if api_version not in (None, *_VERSIONS):
        raise NotOfferedError(f"api_version: {api_version!r}; expected one of {_VERSIONS}")
    return modules[__name__]


def __getattr__(name: str) -> NoReturn:
    known = "; np." + name + " of np.asarray(x) does it on the host" if hasattr(np, name) else ""
    raise MissingError(f"bitlane.array_api has no {name}: it has what takes no arithmetic{known}")


# --- operations on bits -------------------------------------------------------------------------


def bitwise_and(x1: Any, x2: Any, /) -> Array:
    """Return the bits that are 1 in both; of truth values, whether both are true."""
    return _operate(Op.AND, x1, x2)


def bitwise_or(x1: Any, x2: Any, /) -> Array:
    """Return the bits that are 1 in one or both."""
    return _operate(Op.OR, x1, x2)


def bitwise_xor(x1: Any, x2: Any, /) -> Array:
    """Return the bits in which the two differ."""
    return _operate(Op.XOR, x1, x2)


def bitwise_invert(x: Array, /) -> Array:
    """Invert every bit; of truth values, the truth."""
    return _operate(Op.NOT, x)


def bitwise_left_shift(x1: Any, x2: Any, /) -> Array:
    """Return ``x1 << x2``; 0 for counts of the width and more."""
    return _operate(Op.SHIFT_LEFT, x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Array:
    """Return ``x1 >> x2`` with the sign of ``x1``; for counts of the width and more, the sign."""
    return _operate(Op.SHIFT_RIGHT, x1, x2)


def positive(x: Array, /) -> Array:
    """Return the numbers of ``x``, copied."""
    return _operate(Op.COPY, x)


def _operate(op: Op, *operands: Any) -> Array:
    _expect_arrays(*operands)
    result: Array = dispatch_elementwise(op, *operands)
    return result


def _expect_arrays(*operands: Any) -> None:
    """Raise ``DataTypeError`` unless one of ``operands`` is an array on a device."""
    if not [x for x in operands if isinstance(x, Array)]:
        raise DataTypeError("x: expected an array on a device (array_api.asarray makes one)")


# --- tests of elements ----------------------------------------------------------------------------


def equal(x1: Any, x2: Any, /) -> Array:
    """Return whether elements are equal: floats as IEEE 754 says."""
    return _decide(np.equal, x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Array:
    """Return whether elements differ: floats as IEEE 754 says."""
    return _decide(np.not_equal, x1, x2)


def logical_and(x1: Any, x2: Any, /) -> Array:
    """Return whether both elements are true, or not 0."""
    return _decide(np.logical_and, x1, x2)


def logical_or(x1: Any, x2: Any, /) -> Array:
    """Return whether one or both of two elements are true, or not 0."""
    return _decide(np.logical_or, x1, x2)


def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Return whether one of two elements is true, or not 0, and the other is not."""
    return _decide(np.logical_xor, x1, x2)


def logical_not(x: Array, /) -> Array:
    """Return whether each element is false, or 0."""
    return _decide(np.logical_not, x)


def isfinite(x: Array, /) -> Array:
    """Return whether each element is neither infinite nor a NaN."""
    return _decide(np.isfinite, x)


def isinf(x: Array, /) -> Array:
    """Return whether each element is infinite."""
    return _decide(np.isinf, x)


def isnan(x: Array, /) -> Array:
    """Return whether each element is a NaN."""
    return _decide(np.isnan, x)


def signbit(x: Array, /) -> Array:
    """Return whether the sign of each element is set."""
    return _decide(np.signbit, x)


def where(condition: Array, x1: Any, x2: Any, /) -> Array:
    """Return the elements of ``x1`` where ``condition`` is true, else those of ``x2``."""
    _expect_arrays(condition)
    return _where(condition, x1, x2)


def any(x: Array, /, *, axis: Axes = None, keepdims: Any = False) -> Array:
    """Return whether any element along ``axis``, all for None, is true, or not 0."""
    _expect_arrays(x)
    result: Array = x.any(axis, keepdims=keepdims)
    return result


def all(x: Array, /, *, axis: Axes = None, keepdims: Any = False) -> Array:
    """Return whether all elements along ``axis``, all for None, are true, or not 0."""
    _expect_arrays(x)
    result: Array = x.all(axis, keepdims=keepdims)
    return result


def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: Any = False) -> Array:
    """Count the elements along ``axis``, all for None, that are true, or not 0, as int64."""
    _expect_arrays(x)
    return _count_nonzero(x, axis, keepdims=keepdims)


def sum(
    x: Array, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: Any = False
) -> Array:
    """Return the sums along ``axis``, all for None, modulo the range of ``dtype``.

    ``dtype``: an integer type, uint64 for unsigned elements and int64 for others by default.
    """
    _expect_arrays(x)
    result: Array = x.sum(axis, dtype, keepdims=keepdims)
    return result


def _decide(ufunc: np.ufunc, *operands: Any) -> Array:
    _expect_arrays(*operands)
    result: Array = dispatch_predicate(ufunc, *operands)
    return result


# --- data types ---------------------------------------------------------------------------------


def astype(
    x: Array, dtype: DType, /, *, copy: Any = True, device: DeviceLike | None = None
) -> Array:
    """Cast ``x`` to ``dtype`` on its device, and send the result to ``device``."""
    result = x.astype(dtype, copy=copy)
    return result if device is None else result.to_device(device)


def can_cast(from_: DType | Array, to: DType, /) -> Any:
    """Return whether ``to`` holds all values of ``from_``."""
    return np.can_cast(type_of(from_), to)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the type in which all meet."""
    return np.result_type(*(type_of(x) for x in arrays_and_dtypes))


@dataclass(frozen=True, slots=True)
class _FloatInfo:
    """The limits of a float type, as Python floats: the standard's ``finfo``."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


def finfo(x: DType | Array, /) -> _FloatInfo:
    """Return bits and limits of a float type, or of an array's. Raises ``DataTypeError``."""
    kind = type_of(x)
    try:
        found = np.finfo(kind)
    except ValueError:
        raise DataTypeError(f"x: {kind}; expected a float type") from None
    eps, most, least = float(found.eps), float(found.max), float(found.min)
    return _FloatInfo(found.bits, eps, most, least, float(found.smallest_normal), found.dtype)


class __array_namespace_info__:  # the standard's name
    """Types, devices and optional abilities of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        return {
            "boolean indexing": True,
            "data-dependent shapes": False,
            "max dimensions": MOST_AXES,
        }

    def default_device(self) -> DeviceLike:
        return default_device()

    def devices(self) -> list[DeviceLike]:
        return [default_device()]

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:
        """Return the default types; there is none for complex numbers."""
        return {"real floating": float64, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: DeviceLike | None = None, kind: Any = None) -> dict[str, DType]:
        return {x.name: x for x in _TYPES if kind is None or isdtype(x, kind)}


# --- creation -----------------------------------------------------------------------------------


def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: DeviceLike | None = None, copy: Any = None
) -> Array:
    """Return ``obj`` on a device; see ``Device.asarray``. With None, an array stays on its own."""
    where = obj.device if device is None and isinstance(obj, Array) else _device_or_default(device)
    return arrays.asarray(where, obj, dtype, copy=copy)


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: Any = None) -> Array:
    """Copy an object with ``__dlpack__`` to a device; see ``Device.from_dlpack``."""
    where = x.device if device is None and isinstance(x, Array) else _device_or_default(device)
    return arrays.from_dlpack(where, x, copy=copy)


def empty(shape: Shape, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Array:
    """Return elements with any content; booleans, whose bytes are 0 or 1, are all False."""
    return creation.empty(_device_or_default(device), shape, float64 if dtype is None else dtype)


def full(
    shape: Shape, fill_value: Any, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Array:
    """Return elements that are all ``fill_value``, a number or an array without axes."""
    return creation.full(_device_or_default(device), shape, fill_value, dtype)


def zeros(shape: Shape, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Array:
    """Return elements that are all 0."""
    return full(shape, 0, dtype=float64 if dtype is None else dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Array:
    """Return elements that are all 1."""
    return full(shape, 1, dtype=float64 if dtype is None else dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Array:
    """Return elements that are 1 where the column is the row plus ``k``, else 0."""
    here = _device_or_default(device)
    offset = as_integer("k", k)
    height, width = as_shape((n_rows, n_rows if n_cols is None else n_cols))
    result = zeros((height, width), dtype=dtype, device=here)
    first = (max(0, -offset), max(0, offset))
    count = min(height - first[0], width - first[1])
    if count > 0:
        start = first[0] * width + first[1]
        diagonal = result.reshape(-1)[start : start + (count - 1) * (width + 1) + 1 : width + 1]
        diagonal[...] = np.ones((), diagonal.dtype)
    return result


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Array:
    """Send the numbers of ``np.arange``: from ``start`` on, below ``stop`` if they ascend.

    Raises as `linspace` does.
    """
    here = _device_or_default(device)
    limits = (0, start, step) if stop is None else (start, stop, step)
    return _send(here, "arange", lambda: np.arange(*limits, dtype=_optional_dtype(dtype)))


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    endpoint: Any = True,
) -> Array:
    """Send ``num`` numbers at equal distances, those of ``np.linspace``.

    Raises ``DataTypeError``, ``OutOfRangeError`` or ``ShapeError``.
    """
    here, kind = _device_or_default(device), _optional_dtype(dtype)
    count = as_integer("linspace: num", num)
    if count < 0:
        raise ShapeError(f"linspace: num: {count}; expected 0 or more")
    return _send(
        here, "linspace", lambda: np.linspace(start, stop, count, endpoint=endpoint, dtype=kind)
    )


def empty_like(
    x: Array, /, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Array:
    """Return ``empty`` with the shape of ``x``, and by default its type and device."""
    return empty(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def full_like(
    x: Array, /, fill_value: Any, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Array:
    """Return ``full`` with the shape of ``x``, and by default its type and device."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(
    x: Array, /, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Array:
    """Return ``zeros`` with the shape of ``x``, and by default its type and device."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(
    x: Array, /, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Array:
    """Return ``ones`` with the shape of ``x``, and by default its type and device."""
    return full_like(x, 1, dtype=dtype, device=device)


def _device_or_default(device: DeviceLike | None) -> DeviceLike:
    if device is None:
        return default_device()
    expect_device(device)
    return device


def _optional_dtype(dtype: DType | None) -> DType | None:
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
    return arrays.asarray(device, array)


# --- manipulation -------------------------------------------------------------------------------


def broadcast_to(x: Array, /, shape: Shape) -> Array:
    """Return a view of ``x`` repeated to ``shape``."""
    return x.broadcast_to(shape)


def matrix_transpose(x: Array, /) -> Array:
    """Return a view with the last two axes exchanged. Raises ``ShapeError`` if there are fewer."""
    return x.mT


def permute_dims(x: Array, /, axes: Sequence[int]) -> Array:
    """Return a view of ``x`` with its axes in another order."""
    return x.transpose(axes)


def reshape(x: Array, /, shape: Shape, *, copy: Any = None) -> Array:
    """Return the elements, in C's order, as ``shape``; a copy only where a view cannot be."""
    return x.reshape(shape, copy=copy)


def take(x: Array, indices: Any, /, *, axis: int | None = None) -> Array:
    """Copy the elements of ``x`` at ``indices`` along ``axis``, which one axis alone may omit.

    Raises ``ArrayIndexError``, ``AxisError``, or ``ShapeError`` without an axis.
    """
    if axis is None and x.ndim != 1:
        raise ShapeError(f"axis: None for shape {x.shape}; expected an axis")
    return _take(x, indices, axis or 0)
