"""NumPy's functions on arrays that take no arithmetic, apart from those of `shaping`."""

from copy import copy
from typing import Any

import numpy as np

from bitlane_rtl.abi import Op

from ..errors import DataTypeError, NotOfferedError
from . import shaping
from .array import Array, as_operand
from .elementwise import elementwise, reduce
from .numpy_protocols import implements
from .strided import normalize_axis
from .transfers import download
from .value import Value


@implements(np.array_equal)
def _array_equal(a1: Any, a2: Any) -> bool:
    """Compare on the device: one element of a result comes to the host.

    Raises ``DataTypeError`` for floats, and where NumPy has no integer type for both.
    """
    if np.shape(a1) != np.shape(a2):
        return False
    like = a1 if isinstance(a1, Array) else a2
    if not like.size:
        return True
    pair = as_operand("a", a1), as_operand("b", a2)
    differences = elementwise(like.device, Op.XOR, pair)
    return not download(reduce(Op.OR, differences, None)).item()


@implements(np.copyto)
def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if where is not True:
        raise NotOfferedError("np.copyto: where is not offered on a device; assign to slices")
    given = as_operand("src", src)
    kind = dst.dtype if isinstance(given, int) else given.dtype
    if not np.can_cast(kind, dst.dtype, casting):
        raise DataTypeError(f"np.copyto: from {kind} to {dst.dtype}; casting is {casting!r}")
    if isinstance(given, Value) and not isinstance(dst, Array):
        np.copyto(dst, download(given), casting=casting)
    else:
        dst[...] = src


implements(np.copy)(copy)
implements(np.array2string)(
    lambda a, *given, **options: np.array2string(a.get(), *given, **options)
)
implements(np.sum)(
    lambda a, axis=None, dtype=None, out=None, keepdims=False: a.sum(axis, dtype, out, keepdims)
)


# --- types and sizes ----------------------------------------------------------------------------


def type_of(x: Any) -> Any:
    """Return the type of an array on a device, and anything else as it is."""
    return x.dtype if isinstance(x, Array) else x


implements(np.can_cast)(lambda from_, to, casting="safe": np.can_cast(type_of(from_), to, casting))
implements(np.result_type)(lambda *given: np.result_type(*(type_of(x) for x in given)))
implements(np.ndim)(lambda a: a.ndim)
implements(np.shape)(lambda a: a.shape)
implements(np.size)(
    lambda a, axis=None: a.size if axis is None else a.shape[normalize_axis(axis, a.ndim)]
)


# --- shapes -------------------------------------------------------------------------------------


@implements(np.reshape)
def _reshape(a: Array, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    if order != "C":
        raise NotOfferedError(f"np.reshape: order {order!r} on a device; expected 'C'")
    return a.reshape(shape, copy=copy)


@implements(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Array:
    if not isinstance(arr, Array):
        raise DataTypeError(
            "arr: an array on the host with indices on a device; expected indices on the host"
            " (indices.get() brings them there)"
        )
    return shaping.take_along_axis(arr, indices, axis)


implements(np.transpose)(lambda a, axes=None: a.transpose(axes))
implements(np.ravel)(lambda a, order="C": _reshape(a, -1, order))
implements(np.broadcast_to)(lambda array, shape, subok=False: array.broadcast_to(shape))
implements(np.broadcast_arrays)(
    lambda *arrays, subok=False: tuple(shaping.broadcast_arrays(*arrays))
)
implements(np.meshgrid)(
    lambda *xi, copy=True, sparse=False, indexing="xy": tuple(
        shaping.meshgrid(*xi, copy=copy, sparse=sparse, indexing=indexing)
    )
)
