"""Views cut, turned and joined; elements taken or repeated: copies only where no view will do."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataTypeError, OutOfRangeError, ShapeError
from ..streaming.operands import as_array, as_integer, broadcast_shapes, host_memory, oversized
from .base import value_of
from .elementwise import placed
from .strided import axes_of, axis_of, listed, shape_of
from .transfers import reserve, upload
from .value import overwrite
from .views import Views

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
    result = type(here[0])(reserve(home, shape, dtype))
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


def take(x: Views, indices: Any, axis: int | None = None) -> Views:
    """The elements of ``x`` at ``indices`` along ``axis``; of ``x`` as one row for None.

    The shape of ``indices`` replaces the axis. Raises ``ArrayIndexError`` or ``AxisError``.
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(axis, x.ndim)
    whole = _integers("indices", indices)
    result = x[(*(slice(None),) * at, whole)]
    return result if whole.ndim else result.copy()


def take_along_axis(x: Views, indices: Any, axis: int | None = -1) -> Views:
    """Return, for each row along ``axis``, the elements at its own indices; other axes broadcast.

    Raises ``ArrayIndexError``, ``AxisError``, or ``ShapeError`` for another number of axes.
    """
    whole = _integers("indices", indices)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if whole.ndim != x.ndim:
        raise ShapeError(f"indices: shape {whole.shape}; expected {x.ndim} axes, as x has")
    at = axis_of(axis, x.ndim)
    rows = np.ogrid[tuple(slice(n) for n in x.shape)]
    return x[tuple(whole if axis == at else row for axis, row in enumerate(rows))]


def repeat(x: Views, repeats: Any, axis: int | None = None) -> Views:
    """Each element along ``axis`` several times, one number for all or each its own.

    ``x`` as one row for None. Raises ``AxisError``, ``DataTypeError`` or ``ShapeError``.
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(axis, x.ndim)
    counts = _integers("repeats", repeats)
    if counts.shape not in ((), (1,), (x.shape[at],)) or (counts < 0).any():
        raise ShapeError(
            f"repeats: shape {counts.shape}, from {counts.min(initial=0)} on; expected a number of"
            f" 0 or more, or {x.shape[at]} of them"
        )
    if counts.size != 1:
        with host_memory("repeats", sum(counts.tolist()) * np.dtype(np.int64).itemsize):
            indices = np.repeat(np.arange(x.shape[at]), counts.astype(np.int64))
        return take(x, indices, at)
    count = int(counts.reshape(-1)[0])
    before, after = x.shape[: at + 1], x.shape[at + 1 :]
    shape = (*before[:-1], before[-1] * count, *after)
    each = x[(*(slice(None),) * (at + 1), None)]
    return each.broadcast_to((*before, count, *after)).reshape(shape, copy=True)


def tile(x: Views, repetitions: int | Sequence[int]) -> Views:
    """``x`` several times side by side along each axis, the last axis last. ``ShapeError``."""
    times = shape_of(listed(repetitions), "reps")
    rank = max(x.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    sides = (1,) * (rank - x.ndim) + x.shape
    one = x.reshape([n for side in sides for n in (1, side)])
    many = one.broadcast_to([n for pair in zip(times, sides, strict=True) for n in pair])
    return many.reshape([n * side for n, side in zip(times, sides, strict=True)], copy=True)


def meshgrid(
    *arrays: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True
) -> list[Views]:
    """The coordinates of a grid, an array for each of its axes, from those along each axis.

    ``indexing``: "xy" exchanges the first two axes. ``sparse``: without repetitions; without
    ``copy`` they are views. Raises ``ShapeError``.
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"indexing: {indexing!r}; expected 'xy' or 'ij'")
    here = all_on_device(arrays)
    if any(x.ndim > 1 for x in here):
        raise ShapeError(f"arrays: shapes {[x.shape for x in here]}; expected one axis each")
    places = list(range(len(here)))
    if indexing == "xy":
        places[:2] = places[1::-1]
    shape = [here[place].size for place in places]
    result = []
    for at, x in enumerate(here):
        sides = [n if place == at else 1 for place, n in zip(places, shape, strict=True)]
        view = x.reshape(sides)
        view = view if sparse else view.broadcast_to(shape)
        result.append(view.copy() if copy else view)
    return result


def _integers(name: str, given: Any) -> np.ndarray[Any, Any]:
    """``given`` as integers on the host.

    Raises ``DataTypeError``, ``OutOfRangeError``, or ``ShapeError`` for lists of different lengths.
    """
    try:
        array = np.asarray(given)
    except ValueError:
        raise ShapeError(f"{name}: lists of different lengths; expected alike") from None
    if not array.size and not hasattr(given, "dtype"):
        # Without elements, NumPy's type of a list is float64.
        array = array.astype(np.int64)
    if (number := oversized(array)) is not None:
        raise OutOfRangeError(f"{name}: {number}; expected integers of 64 bits")
    if array.dtype.kind not in "ui":
        raise DataTypeError(f"{name}: data type {array.dtype}; expected integers")
    return array
