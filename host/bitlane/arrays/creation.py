"""From what the host has to arrays on a device, and the types that they may have."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from bitlane_rtl.abi import Op

from ..errors import CopyError
from ..expression.form import apply, broadcast
from ..jobs.operands import DataTypeError, as_array
from .array import Array
from .base import operand, supported
from .operations import converted, placed
from .strided import shape_of
from .transfers import empty as reserved
from .transfers import upload
from .value import Home

__all__ = ["asarray", "empty", "from_dlpack", "full"]


def asarray(
    home: Home, x: ArrayLike, dtype: DTypeLike | None = None, *, copy: bool | None = None
) -> Array:
    """``x`` on the device of ``home``; see `Device.asarray`."""
    if isinstance(x, Array):
        result = x if x.device is home else asarray(home, x.get())
        if dtype is None or supported(dtype) == result.dtype:
            return result.copy() if copy and result is x else result
        if copy is False:
            raise CopyError(f"copy: False; {x.dtype} as {dtype} takes a copy")
        return result.astype(dtype)
    if copy is False:
        raise CopyError("copy: False; what the host has comes to the device as a copy")
    array = as_array("x", x)
    kind = array.dtype.newbyteorder("=") if dtype is None else supported(dtype)
    return Array(upload(home, converted("x", array, kind)))


def from_dlpack(home: Home, x: Any, *, copy: bool | None = None) -> Array:
    """What has ``__dlpack__``, on the device of ``home``; see `Device.from_dlpack`."""
    if not hasattr(x, "__dlpack__"):
        raise DataTypeError(f"x: of type {type(x).__name__}; expected one that has __dlpack__")
    return asarray(home, x if isinstance(x, Array) else np.from_dlpack(x), copy=copy)


def empty(home: Home, shape: int | Sequence[int], dtype: DTypeLike) -> Array:
    """Elements that are whatever the memory holds."""
    return Array(reserved(home, shape_of(shape), supported(dtype)))


def full(home: Home, shape: int | Sequence[int], fill: Any, dtype: DTypeLike | None) -> Array:
    """Elements that are all ``fill``, a number of the host or an array here without axes."""
    given = operand("fill_value", fill)
    kind = supported(dtype if dtype is not None else np.asarray(given).dtype)
    one = placed(home, "fill_value", given, kind)
    node = apply(Op.COPY, broadcast(one.node, shape_of(shape)))
    return Array(one.derived(node))
