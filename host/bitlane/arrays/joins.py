"""NumPy's functions that join arrays, or broadcast them to one shape."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments.axes import as_list, normalize_axis
from ..arguments.operands import as_array, as_integer
from ..errors import DataTypeError, ShapeError
from ..lowering import broadcast_shapes
from .array import Array
from .elementwise import to_device
from .numpy_protocols import implements
from .shapes import Axes, at_least, expand_dims
from .transfers import reserve, upload
from .value import overwrite


@implements(np.concatenate)
def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Array:
    """Join arrays along ``axis``, in the type that NumPy joins them as."""
    here = [x for x in arrays if isinstance(x, Array)]
    if not here:
        raise ShapeError("arrays: none on a device; expected one at least")
    parts = [x if isinstance(x, Array) else as_array("arrays", x) for x in arrays]
    if axis is None:
        parts = [x.reshape(-1) if isinstance(x, Array) else np.ravel(x) for x in parts]
        axis = 0
    shapes = [np.shape(x) for x in parts]
    at = normalize_axis(axis, len(shapes[0]))
    if len({(len(s), s[:at], s[at + 1 :]) for s in shapes}) != 1:
        raise ShapeError(f"arrays: shapes {shapes}; expected alike but for axis {at}")
    device = here[0].device
    dtype = _common_type(parts)
    shape = (*shapes[0][:at], sum(s[at] for s in shapes), *shapes[0][at + 1 :])
    values = [
        to_device(device, "arrays", x._value if isinstance(x, Array) else x, dtype) for x in parts
    ]
    result = Array(reserve(device, shape, dtype))
    start = 0
    for value in values:
        stop = start + value.shape[at]
        part = result[(slice(None),) * at + (slice(start, stop),)]
        overwrite(part._value, value)
        start = stop
    return result


def _common_type(arrays: Sequence[Any]) -> np.dtype[Any]:
    """Return the type that NumPy joins ``arrays`` as.

    Raises ``DataTypeError`` if the device would have to convert integers to floats.
    """
    kinds = [x.dtype for x in arrays]
    dtype = np.result_type(*kinds)
    if dtype.kind == "f" and any(isinstance(x, Array) and x.dtype != dtype for x in arrays):
        names = " and ".join(dict.fromkeys(map(str, kinds)))
        raise DataTypeError(
            f"arrays: data types {names}, which NumPy joins as {dtype}; expected one type, or types"
            " that an integer type holds together (astype converts integers; view keeps the bits)"
        )
    return dtype


@implements(np.stack)
def stack(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Join arrays along a new axis at ``axis``."""
    parts = [x if isinstance(x, Array) else as_array("arrays", x) for x in arrays]
    if len({x.shape for x in parts}) != 1:
        raise ShapeError(f"arrays: shapes {[x.shape for x in parts]}; expected one or more alike")
    at = normalize_axis(axis, parts[0].ndim + 1)
    return concatenate(
        [expand_dims(x, at) if isinstance(x, Array) else np.expand_dims(x, at) for x in parts], at
    )


@implements(np.roll)
def roll(a: Array, shift: Axes, axis: Axes | None = None) -> Array:
    """Copy the array with its elements moved by ``shift`` along ``axis``, around the end.

    One shift for all axes, one for each, or several for one axis. Raises ``DataTypeError`` or
    ``ShapeError``.
    """
    if axis is None:
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    axes = [normalize_axis(at, a.ndim) for at in as_list(axis)]
    shifts = [as_integer("shift", by) for by in as_list(shift)]
    try:
        pairs = np.broadcast(np.array(shifts, object), np.array(axes, object))
    except ValueError:
        raise ShapeError(f"shift: {shift}; expected one for each axis of {axis}") from None
    result = a
    for by, where in pairs:
        cut = -by % a.shape[where] if a.shape[where] else 0
        before = (slice(None),) * where
        parts = [result[(*before, slice(cut, None))], result[(*before, slice(cut))]]
        result = concatenate(parts, where)
    return result.copy() if result is a else result


def send_all(arrays: Sequence[Any]) -> list[Array]:
    """Send the arrays on the host to the device of the first array on a device."""
    like = next((x for x in arrays if isinstance(x, Array)), None)
    if arrays and like is None:
        raise DataTypeError("arrays: none on a device; expected one at least")
    return [
        x if isinstance(x, Array) else Array(upload(like.device, as_array("arrays", x)))
        for x in arrays
        if like is not None
    ]


def broadcast_arrays(*arrays: Any) -> list[Array]:
    """Return views of ``arrays`` in one shape. Raises ``ShapeError``."""
    here = send_all(arrays)
    try:
        shape: tuple[int, ...] = ()
        for x in here:
            shape = broadcast_shapes(shape, x.shape)
    except ShapeError:
        shapes = ", ".join(str(x.shape) for x in here)
        raise ShapeError(f"arrays: shapes {shapes} do not broadcast") from None
    return [x.broadcast_to(shape) for x in here]


implements(np.broadcast_arrays)(lambda *arrays, subok=False: tuple(broadcast_arrays(*arrays)))


def _stack_at_least(rank: int, axis: int, tup: Sequence[Any]) -> Array:
    """Join arrays of ``rank`` axes or more along ``axis``; rows of one axis along that."""
    parts = [at_least(x, rank) for x in tup]
    return concatenate(parts, min(axis, parts[0].ndim - 1) if parts else axis)


@implements(np.column_stack)
def column_stack(tup: Sequence[Any]) -> Array:
    """Join arrays along the second axis; those of one axis are columns. Raises ``ShapeError``."""
    parts = [x if isinstance(x, Array) else as_array("tup", x) for x in tup]
    return concatenate([x if x.ndim > 1 else at_least(x, 2).T for x in parts], 1)


implements(np.hstack)(lambda tup: _stack_at_least(1, 1, tup))
implements(np.vstack)(lambda tup: _stack_at_least(2, 0, tup))
implements(np.dstack)(lambda tup: _stack_at_least(3, 2, tup))
