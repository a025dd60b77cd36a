"""Arrays on a device from arrays on the host, or from those of another library or device."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..arguments.operands import as_array
from ..errors import CopyError, DataTypeError, ExchangeError
from .array import Array
from .elementwise import as_dtype, cast_on_host
from .transfers import upload
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
