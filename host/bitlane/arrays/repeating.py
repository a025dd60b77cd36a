"""Elements taken by indices, or repeated: copies on the device, of rows and whole arrays.

Each is NumPy's function of the same name, or the array API's. Indices and numbers of repetitions
are on the host; those of an array on the device are brought there first.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..jobs.operands import DataTypeError, OutOfRangeError, ShapeError, host_memory, oversized
from .shaping import all_on_device
from .strided import axis_of, listed, shape_of
from .views import Views

__all__ = ["meshgrid", "repeat", "take", "take_along_axis", "tile"]


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
