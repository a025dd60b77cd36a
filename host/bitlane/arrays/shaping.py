"""Views cut, turned and put together: views where they can be, else copies on the device.

Each is NumPy's function of the same name, or the array API's.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..jobs.operands import DataTypeError, ShapeError, as_array, as_integer, broadcast_shapes
from .base import value_of
from .operations import placed
from .strided import axes_of, axis_of, listed
from .transfers import empty, upload
from .value import overwrite
from .views import Views

__all__ = [
    "all_on_device",
    "broadcast_arrays",
    "concatenate",
    "expand_dims",
    "flip",
    "moveaxis",
    "roll",
    "squeeze",
    "stack",
    "swapaxes",
    "unstack",
]

Axes = int | Sequence[int]


def squeeze(x: Views, axis: Axes | None = None) -> Views:
    """Without axes of one element: all of them, or ``axis``. Raises ``ShapeError``."""
    if axis is None:
        axis = [at for at, n in enumerate(x.shape) if n == 1]
    gone = axes_of(axis, x.ndim)
    if any(x.shape[at] != 1 for at in gone):
        raise ShapeError(f"axis: {axis} of shape {x.shape}; expected axes of one element")
    return x[(*(0 if at in gone else slice(None) for at in range(x.ndim)), ...)]


def expand_dims(x: Views, axis: Axes = 0) -> Views:
    """With axes of one element more, which are then at ``axis``. Raises ``AxisError``."""
    count = len(axis) if isinstance(axis, Sequence) else 1
    new = axes_of(axis, x.ndim + count)
    return x[(*(None if at in new else slice(None) for at in range(x.ndim + count)), ...)]


def moveaxis(x: Views, source: Axes, destination: Axes) -> Views:
    """With the axes ``source`` at ``destination``, the others in their order."""
    old, new = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(old) != len(new):
        raise ShapeError(f"destination: {destination}; expected as many axes as {source}")
    order = [at for at in range(x.ndim) if at not in old]
    for to, at in sorted(zip(new, old, strict=True)):
        order.insert(to, at)
    return x.transpose(order)


def swapaxes(x: Views, axis1: int, axis2: int) -> Views:
    """With two axes in each other's place; they may be the same. Raises ``ShapeError``."""
    order = list(range(x.ndim))
    one, other = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[one], order[other] = other, one
    return x.transpose(order)


def flip(x: Views, axis: Axes | None = None) -> Views:
    """With the elements along ``axis``, or along all axes, the other way round."""
    turned = axes_of(range(x.ndim) if axis is None else axis, x.ndim)
    steps = (slice(None, None, -1 if at in turned else 1) for at in range(x.ndim))
    return x[(*steps, ...)]


def roll(x: Views, shift: Axes, axis: Axes | None = None) -> Views:
    """A copy whose elements are ``shift`` further along ``axis``; those at the end come first.

    One shift for all axes, one for each, or several for one axis. Raises ``DataTypeError`` or
    ``ShapeError``.
    """
    if axis is None:
        return roll(x.reshape(-1), shift, 0).reshape(x.shape)
    axes = [axis_of(at, x.ndim) for at in listed(axis)]
    shifts = [as_integer("shift", by) for by in listed(shift)]
    try:
        pairs = np.broadcast(np.array(shifts, object), np.array(axes, object))
    except ValueError:
        raise ShapeError(f"shift: {shift}; expected one for each axis of {axis}") from None
    result = x
    for by, where in pairs:
        cut = -by % x.shape[where] if x.shape[where] else 0
        before = (slice(None),) * where
        parts = [result[(*before, slice(cut, None))], result[(*before, slice(cut))]]
        result = concatenate(parts, where)
    return result.copy() if result is x else result


def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Views:
    """One behind the other along ``axis``, in the type in which NumPy has them meet."""
    here = [x for x in arrays if isinstance(x, Views)]
    if not here:
        raise ShapeError("arrays: none on a device; expected one at least")
    parts = list(arrays)
    if axis is None:
        parts = [x.reshape(-1) if isinstance(x, Views) else np.ravel(x) for x in parts]
        axis = 0
    shapes = [np.shape(x) for x in parts]
    at = axis_of(axis, len(shapes[0]))
    if len({(len(s), s[:at], s[at + 1 :]) for s in shapes}) != 1:
        raise ShapeError(f"arrays: shapes {shapes}; expected alike but for axis {at}")
    home = here[0].device
    dtype = _common_type(parts)
    shape = (*shapes[0][:at], sum(s[at] for s in shapes), *shapes[0][at + 1 :])
    values = [
        placed(home, "arrays", value_of(x) if isinstance(x, Views) else np.asarray(x), dtype)
        for x in parts
    ]
    result = type(here[0])(empty(home, shape, dtype))
    start = 0
    for value in values:
        stop = start + value.shape[at]
        part = result[(slice(None),) * at + (slice(start, stop),)]
        overwrite(value_of(part), value)
        start = stop
    return result


def _common_type(arrays: Sequence[Any]) -> np.dtype[Any]:
    """The type that NumPy joins ``arrays`` as.

    Raises ``DataTypeError`` if the device would have to convert integers to floats.
    """
    kinds = [x.dtype if isinstance(x, Views) else np.asarray(x).dtype for x in arrays]
    dtype = np.result_type(*kinds)
    if dtype.kind == "f" and any(isinstance(x, Views) and x.dtype != dtype for x in arrays):
        names = " and ".join(dict.fromkeys(map(str, kinds)))
        raise DataTypeError(
            f"arrays: data types {names}, which NumPy joins as {dtype}; expected one type, or types"
            " that an integer type holds together (astype converts integers; view keeps the bits)"
        )
    return dtype


def stack(arrays: Sequence[Any], axis: int = 0) -> Views:
    """Side by side along a new axis, which is then at ``axis``."""
    parts = [x if isinstance(x, Views) else np.asarray(x) for x in arrays]
    if len({x.shape for x in parts}) != 1:
        raise ShapeError(f"arrays: shapes {[x.shape for x in parts]}; expected one or more alike")
    at = axis_of(axis, parts[0].ndim + 1)
    return concatenate(
        [expand_dims(x, at) if isinstance(x, Views) else np.expand_dims(x, at) for x in parts], at
    )


def unstack(x: Views, axis: int = 0) -> tuple[Views, ...]:
    """The parts along ``axis``, as views."""
    return tuple(moveaxis(x, axis_of(axis, x.ndim), 0))


def all_on_device(arrays: Sequence[Any]) -> list[Views]:
    """``arrays``, those of the host sent to the device of the first that is on one."""
    like = next((x for x in arrays if isinstance(x, Views)), None)
    if arrays and like is None:
        raise DataTypeError("arrays: none on a device; expected one at least")
    return [
        x if isinstance(x, Views) else type(like)(upload(like.device, as_array("arrays", x)))
        for x in arrays
        if like is not None
    ]


def broadcast_arrays(*arrays: Any) -> list[Views]:
    """Views of ``arrays`` in one shape. Raises ``ShapeError``."""
    here = all_on_device(arrays)
    try:
        shape: tuple[int, ...] = ()
        for x in here:
            shape = broadcast_shapes(shape, x.shape)
    except ShapeError:
        shapes = ", ".join(str(x.shape) for x in here)
        raise ShapeError(f"arrays: shapes {shapes} do not broadcast") from None
    return [x.broadcast_to(shape) for x in here]
