"""From what the host has to arrays on a device, and the types that they may have."""

from numpy.typing import ArrayLike, DTypeLike

from ..errors import CopyError
from ..jobs.operands import as_array
from .array import Array
from .base import supported
from .operations import converted
from .transfers import upload
from .value import Home

__all__ = ["asarray"]


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
