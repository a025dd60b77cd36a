"""Checks of a call's NumPy arguments: types, shapes and layouts.

Looks at descriptions only, never at an element, except to fit a Python integer into a type.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from operator import index as as_index
from typing import Any, Final, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .._typing import AnyArray
from ..errors import (
    BitlaneError,
    DataTypeError,
    OutOfHostMemory,
    OutOfRangeError,
    ShapeError,
)
from ..lowering import broadcast_shapes, order_of, overlaps_itself

_SIZES: Final = {"b": (1,), "u": (1, 2, 4, 8), "i": (1, 2, 4, 8), "f": (2, 4, 8)}
_TYPES: Final = "truth values, integers of 8 to 64 bits or floats of 16 to 64"

_USUAL: Final = frozenset(
    np.dtype(f"{kind}{size}") for kind, sizes in _SIZES.items() for size in sizes
)

_FOREIGN: Final = ">" if sys.byteorder == "little" else "="
"""NumPy's mark of big-endian types; the device is little-endian."""

MOST_AXES: Final = 64
"""Axes that an array of NumPy's can have."""

_HINTS: Final = {
    "c": "; view it as the float type of its parts",
    "M": "; view it as np.int64",
    "m": "; view it as np.int64",
}


def as_array(name: str, value: ArrayLike) -> AnyArray:
    """``value`` as an array of truth values or of one of DirectML's eleven types.

    Raises ``DataTypeError``, or ``ShapeError`` for lists of different lengths; ``name`` is what
    the message calls it.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise DataTypeError(f"{name}: a masked array; expected a plain one (see np.ma.filled)")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"{name}: no array can be made of this {type(value).__name__}: {error}"
        ) from None
    if array.dtype not in _USUAL:
        expect_supported(name, array.dtype)
    return array


def as_integer(name: str, value: SupportsIndex) -> int:
    """``value`` as a Python integer. Raises ``DataTypeError``."""
    try:
        return plain_index(value)
    except TypeError:
        raise DataTypeError(f"{name}: {shown(value)}; expected an integer") from None


def plain_index(value: Any) -> int:  # noqa: ANN401, whatever NumPy takes
    """Return ``value`` as a Python integer. Raises ``TypeError``, for a truth value as well."""
    if isinstance(value, bool):
        raise TypeError("a truth value is not an integer")
    return as_index(value)


def as_flag(name: str, value: SupportsIndex) -> bool:
    """Return an option that is on or off, which NumPy takes as an integer. ``DataTypeError``."""
    try:
        return bool(as_index(value))
    except TypeError:
        raise DataTypeError(f"{name}: {shown(value)}; expected True or False") from None


def as_truth(name: str, value: object) -> bool:
    """Return whether ``value`` is true. Raises ``DataTypeError`` for an array of many elements."""
    try:
        return bool(value)
    except ValueError:
        raise DataTypeError(f"{name}: {shown(value)}; expected True or False") from None


def oversized(array: AnyArray) -> int | None:
    """The first Python integer in ``array``, for which NumPy has no integer type, if any."""
    if array.dtype.kind != "O":
        return None
    return next((x for x in array.flat if isinstance(x, int) and x.bit_length() >= 64), None)


def expect_supported(name: str, dtype: np.dtype[Any]) -> None:
    """Raises ``DataTypeError`` unless ``dtype`` is truth values or one of DirectML's eleven."""
    if dtype.itemsize not in _SIZES.get(dtype.kind, ()):
        hint = _HINTS.get(dtype.kind, "")
        raise DataTypeError(f"{name}: data type {dtype}; expected {_TYPES}{hint}")


def little_endian(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return ``dtype`` in little-endian order, so that types of either order compare equal."""
    return dtype.newbyteorder("<")


def fit_integer(name: str, value: int, dtype: np.dtype[Any]) -> AnyArray:
    """Return ``value`` as an array of rank 0. ``OutOfRangeError`` or ``DataTypeError``."""
    if dtype.kind == "f":
        raise DataTypeError(
            f"{name}: the integer {value} beside {dtype}; expected an array of {dtype}, as only"
            " its encoding counts (or view the other operand as an unsigned type)"
        )
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OutOfRangeError(
            f"{name}: {value} does not fit {dtype}; expected {limits.min} to {limits.max}"
        )
    return np.array(value, dtype)


def expect_integers(a: AnyArray) -> None:
    """Raises ``DataTypeError`` for floats: shifts take integers alone."""
    if a.dtype.kind == "f":
        raise DataTypeError(
            f"a: data type {a.dtype}; shifts expect integers (view it as np.uint{8 * a.itemsize})"
        )


def count_type(dtype: DTypeLike | None, out: object) -> np.dtype[Any]:
    """The type of counts: ``dtype``, else that of ``out``, else uint8.

    Raises ``DataTypeError`` for others than the two that DirectML has.
    """
    if dtype is None:
        dtype = np.uint8 if not isinstance(out, np.ndarray) else out.dtype
    try:
        chosen = np.dtype(dtype)
    except TypeError:
        raise DataTypeError(f"dtype: {dtype!r}; counts are uint8 or uint32") from None
    if chosen.kind != "u" or chosen.itemsize not in (1, 4):
        raise DataTypeError(f"dtype: {chosen}; counts are uint8 or uint32")
    return chosen.newbyteorder("=")


def result_shape(a: AnyArray, b: AnyArray | None) -> tuple[int, ...]:
    """The shape that NumPy's broadcasting gives. Raises ``ShapeError``."""
    if b is None or a.shape == b.shape or b.ndim == 0:
        return a.shape
    shape = broadcast_shapes(a.shape, b.shape)
    if prod(shape) > sys.maxsize:
        raise ShapeError(
            f"a, b: shapes {a.shape} and {b.shape} make more elements than an array can have"
        )
    return shape


def expect_axes(name: str, shape: Sequence[int]) -> None:
    """Raises ``ShapeError`` for more axes than an array of NumPy's has."""
    if len(shape) > MOST_AXES:
        raise ShapeError(
            f"{name}: {len(shape)} axes; expected {MOST_AXES} at most, as NumPy's arrays have"
            " (reshape it first)"
        )


@contextmanager
def allocating(name: str, size: int) -> Iterator[None]:
    """Raise ``OutOfHostMemory`` where this computer has no ``size`` bytes for an array."""
    try:
        if size > sys.maxsize:
            raise MemoryError
        yield
    except BitlaneError:
        raise
    except MemoryError:
        raise OutOfHostMemory(
            f"{name}: {size} bytes do not fit this computer's memory; expected fewer (take slices)"
        ) from None


def use_output(out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
    """An output that the caller brings: any strides and byte order, the very type and shape.

    Raises ``DataTypeError`` or ``ShapeError``.
    """
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise DataTypeError(f"out: of type {type(out).__name__}; expected an array of {dtype}")
    if out.dtype != dtype and little_endian(out.dtype) != little_endian(dtype):
        raise DataTypeError(f"out: data type {out.dtype}; expected {dtype}")
    if out.shape != shape:
        raise ShapeError(f"out: shape {out.shape}; expected {shape}")
    if not out.flags.writeable:
        raise ShapeError("out: the array is read-only")
    if not out.flags.c_contiguous and 0 not in shape:
        steps = [abs(step) for step in out.strides]
        overlap = overlaps_itself((*shape, out.itemsize), (*steps, 1))
        if overlap is not False:
            hint = "" if overlap else " (too intricate to tell, so refused)"
            raise ShapeError(
                f"out: strides {out.strides}; elements must not lie on one another{hint}"
            )
    return out


def new_order(shape: tuple[int, ...], a: AnyArray, b: AnyArray | None) -> tuple[int, ...]:
    """The axes of a result, outermost in memory first: as in the first operand of its shape."""
    like = a if a.shape == shape else b
    if like is None or like.shape != shape or like.flags.c_contiguous:
        return tuple(range(len(shape)))
    return order_of(like.strides)


def as_unsigned(array: AnyArray) -> AnyArray:
    """Return the same memory as unsigned integers of the same width and byte order."""
    order = ">" if array.dtype.byteorder == _FOREIGN else "<"
    return array.view(f"{order}u{array.dtype.itemsize}")


def is_device_order(array: AnyArray) -> bool:
    """Return whether the bytes of an element are in the device's order."""
    return array.dtype.byteorder != _FOREIGN


def as_zeros_and_ones(array: AnyArray) -> AnyArray:
    """Return booleans as bytes of 0 and 1: any byte but 0 is True."""
    return array.view(np.uint8).astype(np.bool_)


def private_copy(array: AnyArray) -> AnyArray:
    """Return a copy that shares no memory; axes that repeat an element still do."""
    distinct = array[(*(slice(1 if stride == 0 else None) for stride in array.strides), ...)]
    return np.broadcast_to(distinct.copy(order="K"), array.shape)


def address_of(array: AnyArray) -> int:
    """Return the address of element 0 in the host's memory."""
    address: int = array.ctypes.data
    return address


def shown(value: object) -> str:
    """``value`` in a message: arrays by their type alone, as their elements take several lines."""
    parts = value if isinstance(value, (tuple, list)) else (value,)
    array = any(hasattr(part, "__array_function__") for part in parts)
    return f"of type {type(value).__name__}" if array else repr(value)


def same_place(a: AnyArray, b: AnyArray) -> bool:
    """Return whether two arrays of one shape have every element at the same address."""
    return a.itemsize == b.itemsize and a.strides == b.strides and address_of(a) == address_of(b)
