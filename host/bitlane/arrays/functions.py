"""NumPy's other functions on arrays (NEP 18): those that take no arithmetic.

Translates calls; a function that is not here says what does it.
"""

import re
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final

import numpy as np

from bitlane_rtl.abi import Op

from ..errors import DataTypeError, NotOfferedError
from . import shaping
from .base import Base, operand, value_of
from .elementwise import operate, reduced
from .shaping import meshgrid, repeat, take, take_along_axis, tile
from .strided import axis_of
from .transfers import download
from .value import Value
from .views import Views


def apply_function(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What ``Array.__array_function__`` gives. Raises ``NotOfferedError`` by name."""
    ours = _FUNCTIONS.get(function)
    if ours is None:
        module = getattr(function, "__module__", "numpy").replace("numpy", "np", 1)
        raise NotOfferedError(
            f"{module}.{function.__name__}: not on a device; np.asarray(x) brings the elements to"
            " the host for it"
        )
    try:
        return ours(*arguments, **options)
    except TypeError as error:
        if "argument" not in str(error) or isinstance(error, NotOfferedError):
            raise
        # Without the name of what does it here.
        reason = str(error).rpartition("() ")[2]
        unknown = re.search(r"unexpected keyword argument '(\w+)'", reason)
        reason = f"does not take {unknown[1]}" if unknown else reason
        raise NotOfferedError(f"np.{function.__name__}: on a device, it {reason}") from None


def offers(name: str) -> bool:
    """Whether NumPy's function ``name`` takes arrays on a device."""
    return getattr(np, name, None) in _FUNCTIONS


def array_equal(a: Any, b: Any) -> bool:
    """Whether two arrays have one shape and the same elements; compared on the device.

    One element of a result comes to the host. Raises ``DataTypeError`` for floats, and where
    NumPy has no integer type for both.
    """
    if np.shape(a) != np.shape(b):
        return False
    like = a if isinstance(a, Base) else b
    if not value_of(like).strided.size:
        return True
    pair = operand("a", a), operand("b", b)
    differences = operate(value_of(like).home, Op.XOR, *pair)
    return not download(reduced(Op.OR, differences, None)).item()


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if where is not True:
        raise NotOfferedError("np.copyto: where is not offered on a device; assign to slices")
    given = operand("src", src)
    kind = dst.dtype if isinstance(given, int) else given.dtype
    if not np.can_cast(kind, dst.dtype, casting):
        raise DataTypeError(f"np.copyto: from {kind} to {dst.dtype}; casting is {casting!r}")
    if isinstance(given, Value) and not isinstance(dst, Views):
        np.copyto(dst, download(given), casting=casting)
    else:
        dst[...] = src


def _can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(own_type(from_), to, casting)


def _raveled(a: Views, order: str = "C") -> Views:
    return _reshaped(a, -1, order=order)


def _reshaped(a: Views, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Views:
    if order != "C":
        raise NotOfferedError(f"np.reshape: order {order!r} on a device; expected 'C'")
    return a.reshape(shape, copy=copy)


def _broadcast(array: Views, shape: Any, subok: bool = False) -> Views:
    return array.broadcast_to(shape)


def _broadcast_arrays(*arrays: Views, subok: bool = False) -> tuple[Views, ...]:
    return tuple(shaping.broadcast_arrays(*arrays))


def _meshgrid(*arrays: Views, **options: Any) -> tuple[Views, ...]:
    return tuple(meshgrid(*arrays, **options))


def _take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Views:
    if not isinstance(arr, Views):
        raise DataTypeError(
            "arr: an array on the host with indices on a device; expected indices on the host"
            " (indices.get() brings them there)"
        )
    return take_along_axis(arr, indices, axis)


def _size(a: Views, axis: int | None = None) -> int:
    return a.size if axis is None else a.shape[axis_of(axis, a.ndim)]


def own_type(x: Any) -> Any:
    """The type of an array on a device; else what it is."""
    return x.dtype if isinstance(x, Views) else x


_FUNCTIONS: Final[Mapping[Any, Callable[..., Any]]] = {
    np.array2string: lambda a, *given, **options: np.array2string(
        download(value_of(a)), *given, **options
    ),
    np.array_equal: array_equal,
    np.broadcast_arrays: _broadcast_arrays,
    np.broadcast_to: _broadcast,
    np.can_cast: _can_cast,
    np.concatenate: shaping.concatenate,
    np.copy: copy,
    np.copyto: _copyto,
    np.expand_dims: lambda a, axis: shaping.expand_dims(a, axis),
    np.flip: lambda m, axis=None: shaping.flip(m, axis),
    np.meshgrid: _meshgrid,
    np.moveaxis: lambda a, source, destination: shaping.moveaxis(a, source, destination),
    np.ndim: lambda a: a.ndim,
    np.ravel: _raveled,
    np.repeat: lambda a, repeats, axis=None: repeat(a, repeats, axis),
    np.reshape: _reshaped,
    np.result_type: lambda *given: np.result_type(*(own_type(x) for x in given)),
    np.roll: lambda a, shift, axis=None: shaping.roll(a, shift, axis),
    np.shape: lambda a: a.shape,
    np.size: _size,
    np.squeeze: lambda a, axis=None: shaping.squeeze(a, axis),
    np.stack: shaping.stack,
    np.sum: Views.sum,
    np.swapaxes: lambda a, axis1, axis2: shaping.swapaxes(a, axis1, axis2),
    np.take: lambda a, indices, axis=None: take(a, indices, axis),
    np.take_along_axis: _take_along_axis,
    np.tile: lambda A, reps: tile(A, reps),
    np.transpose: lambda a, axes=None: a.transpose(axes),
    # NumPy 2.0 has no unstack.
    **({np.unstack: shaping.unstack} if hasattr(np, "unstack") else {}),
}
