"""New arrays on a device: from arrays elsewhere, or filled with one element."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from bitlane_rtl.abi import Op

from ..arguments.operands import as_array, as_flag
from ..compiler import apply, broadcast, copy_ordered
from ..errors import CopyError, DataTypeError, ExchangeError
from .array import Array
from .elementwise import as_dtype, cast_on_host, to_device
from .numpy_protocols import implements
from .operands import as_operand
from .options import as_order, order_axes
from .strided import as_shape
from .transfers import reserve, upload
from .value import DeviceLike, Value


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
    device: DeviceLike, shape: int | Sequence[int], fill_value: Any, dtype: DTypeLike | None = None
) -> Array:
    """Return elements that are all ``fill_value``, a number or an array without axes."""
    one = _one(device, fill_value, dtype)
    return Array(one.derived(apply(Op.COPY, broadcast(one.node, as_shape(shape)))))


def _one(device: DeviceLike, fill_value: Any, dtype: DTypeLike | None) -> Value:
    """Return ``fill_value`` as ``dtype``, by default as its own type."""
    given = as_operand("fill_value", fill_value)
    own = getattr(given, "dtype", None) or np.asarray(given).dtype
    return to_device(device, "fill_value", given, as_dtype(own if dtype is None else dtype))


def _full_like(
    a: Array,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: int | Sequence[int] | None = None,
) -> Array:
    """Return elements that are all ``fill_value``, in memory in the ``order`` of ``a``.

    ``shape``: another one, in C's order unless ``order`` is "F".
    """
    one = _one(a.device, fill_value, a.dtype if dtype is None else dtype)
    as_flag("subok", subok)
    sides, axes = a.shape, order_axes(order, a._value.strided)
    if shape is not None:
        sides = as_shape(shape)
        axes = tuple(range(len(sides)))
        axes = axes[::-1] if as_order(order) == "F" else axes
    return Array(one.derived(copy_ordered(broadcast(one.node, sides), axes)))


implements(np.full_like)(_full_like)


def _filled_with(content: int) -> Callable[..., Array]:
    def like(
        a: Array,
        dtype: DTypeLike | None = None,
        order: str = "K",
        subok: bool = True,
        shape: int | Sequence[int] | None = None,
    ) -> Array:
        return _full_like(a, np.array(content), dtype, order, subok, shape)

    return like


implements(np.zeros_like)(_filled_with(0))
implements(np.ones_like)(_filled_with(1))
implements(np.empty_like)(_filled_with(0))
