"""NumPy's functions on arrays: comparisons, sums, facts, and copies of elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments.axes import as_list, normalize_axis
from ..arguments.operands import allocating, as_flag, as_truth, oversized
from ..errors import ArrayIndexError, DataTypeError, OutOfRangeError, ShapeError
from .array import Array, dispatch_where
from .elementwise import as_value, drop_extra_axes, expect_within, to_device, without_extra_axes
from .joins import send_all
from .masks import choose
from .numpy_protocols import implements
from .operands import as_operand, where_operand
from .options import expect_castable
from .shapes import Axes, along
from .strided import as_shape
from .transfers import download
from .truth import arrays_equal, count_true, is_true
from .value import Value, overwrite


@implements(np.array_equal)
def _array_equal(a1: Any, a2: Any) -> bool:
    """Compare on the device: one element of a result comes to the host. Raises as `compare`."""
    try:
        if np.shape(a1) != np.shape(a2):
            return False
    except ValueError:  # nested lists of unequal lengths
        return False
    like = a1 if isinstance(a1, Array) else a2
    if not like.size:
        return True
    return arrays_equal(like.device, as_operand("a", a1), as_operand("b", a2))


@implements(np.copyto)
def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    given = as_operand("src", src)
    # A Python integer is of the type of an array of integers, but not a truth value.
    weak = isinstance(given, int) and dst.dtype.kind != "b"
    kind = dst.dtype if weak else getattr(given, "dtype", np.dtype(np.int64))
    expect_castable("np.copyto", kind, dst.dtype, casting)
    mask = where_operand(where)
    if not isinstance(dst, Array):
        source = download(given) if isinstance(given, Value) else given
        np.copyto(dst, source, casting=casting, where=np.asarray(where, bool))
    elif mask is None:
        dst[...] = given if isinstance(given, np.ndarray) else src
    else:
        expect_within("src", without_extra_axes(given, len(dst.shape)), dst.shape)
        expect_within("where", getattr(mask, "shape", ()), dst.shape)
        chosen = is_true(as_value(dst.device, "where", mask))
        moved = to_device(dst.device, "src", given, dst.dtype)
        value = drop_extra_axes(moved, len(dst.shape))
        overwrite(dst._value, choose(chosen, value, dst._value), fresh=True)


implements(np.copy)(lambda a, order="K", subok=False: a.copy(order))
implements(np.array2string)(
    lambda a, *given, **options: np.array2string(a.get(), *given, **options)
)
implements(np.any)(
    lambda a, axis=None, out=None, keepdims=False, *, where=True: _expect_array(a).any(
        axis, out, keepdims, where=where
    )
)
implements(np.all)(
    lambda a, axis=None, out=None, keepdims=False, *, where=True: _expect_array(a).all(
        axis, out, keepdims, where=where
    )
)


def _expect_array(a: Any) -> Array:
    """Return ``a``, which is on a device, not ``out`` alone. Raises ``DataTypeError``."""
    if isinstance(a, Array):
        return a
    raise DataTypeError(f"a: of type {type(a).__name__}; expected a bitlane.Array, as out is one")


@implements(np.where)
def where(condition: Any, x: Any, y: Any) -> Array:
    """Choose the elements of ``x`` where ``condition`` is not 0, else those of ``y``."""
    return dispatch_where(condition, x, y)


@implements(np.count_nonzero)
def count_nonzero(a: Array, axis: Axes | None = None, *, keepdims: bool = False) -> Array:
    """Count the elements along ``axis``, all for None, that are not 0, as int64."""
    return Array(count_true(a._value, axis, keep=as_flag("keepdims", keepdims)))


implements(np.sum)(
    lambda a, axis=None, dtype=None, out=None, keepdims=False, *, where=True: _expect_array(a).sum(
        axis, dtype, out, keepdims, where=where
    )
)


# --- types and sizes ----------------------------------------------------------------------------


def type_of(x: Any) -> Any:
    """Return the type of an array on a device, and anything else as it is."""
    return x.dtype if isinstance(x, Array) else x


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(type_of(from_), to, casting)


implements(np.result_type)(lambda *given: np.result_type(*(type_of(x) for x in given)))
implements(np.ndim)(lambda a: a.ndim)
implements(np.shape)(lambda a: a.shape)
implements(np.size)(
    lambda a, axis=None: a.size if axis is None else a.shape[normalize_axis(axis, a.ndim)]
)


# --- copies of elements --------------------------------------------------------------------------


@implements(np.take)
def take(a: Array, indices: Any, axis: int | None = None) -> Array:
    """Copy the elements at ``indices`` along ``axis``; of ``a`` as one row for None.

    The shape of ``indices`` replaces the axis. Raises ``ArrayIndexError`` or ``AxisError``.
    """
    a, at = along(a, axis)
    whole = as_integers("indices", indices)
    result = a[(*(slice(None),) * at, whole)]
    return result if whole.ndim else result.copy()


@implements(np.take_along_axis)
def take_along_axis(arr: Array, indices: Any, axis: int | None = -1) -> Array:
    """Copy the elements of each row along ``axis`` at the row's indices; other axes broadcast.

    Raises ``ArrayIndexError``, ``AxisError``, ``DataTypeError`` for an array on the host, or
    ``ShapeError`` for another number of axes.
    """
    if not isinstance(arr, Array):
        raise DataTypeError(
            "arr: an array on the host with indices on a device; expected indices on the host"
            " (indices.get() brings them there)"
        )
    whole = as_integers("indices", indices)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    if whole.ndim != arr.ndim:
        raise ShapeError(f"indices: shape {whole.shape}; expected {arr.ndim} axes, as x has")
    at = normalize_axis(axis, arr.ndim)
    rows = np.ogrid[tuple(slice(n) for n in arr.shape)]
    return arr[tuple(whole if axis == at else row for axis, row in enumerate(rows))]


@implements(np.repeat)
def repeat(a: Array, repeats: Any, axis: int | None = None) -> Array:
    """Repeat each element along ``axis``: a number for all elements, or one for each.

    ``a`` as one row for None. Raises ``AxisError``, ``DataTypeError`` or ``ShapeError``.
    """
    a, at = along(a, axis)
    counts = as_integers("repeats", repeats)
    if counts.shape not in ((), (1,), (a.shape[at],)) or (counts < 0).any():
        raise ShapeError(
            f"repeats: shape {counts.shape}, from {counts.min(initial=0)} on; expected a number of"
            f" 0 or more, or {a.shape[at]} of them"
        )
    if counts.size != 1:
        with allocating("repeats", sum(counts.tolist()) * np.dtype(np.int64).itemsize):
            indices = np.repeat(np.arange(a.shape[at]), counts.astype(np.int64))
        return take(a, indices, at)
    count = int(counts.reshape(-1)[0])
    before, after = a.shape[: at + 1], a.shape[at + 1 :]
    shape = (*before[:-1], before[-1] * count, *after)
    each = a[(*(slice(None),) * (at + 1), None)]
    return each.broadcast_to((*before, count, *after)).reshape(shape, copy=True)


@implements(np.tile)
def tile(A: Array, reps: int | Sequence[int]) -> Array:
    """Repeat the whole array along its last axes, ``reps`` times each. Raises ``ShapeError``."""
    times = as_shape(as_list(reps), "reps")
    rank = max(A.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    sides = (1,) * (rank - A.ndim) + A.shape
    one = A.reshape([n for side in sides for n in (1, side)])
    many = one.broadcast_to([n for pair in zip(times, sides, strict=True) for n in pair])
    return many.reshape([n * side for n, side in zip(times, sides, strict=True)], copy=True)


@implements(np.delete)
def delete(arr: Array, obj: Any, axis: int | None = None) -> Array:
    """Copy all but the slices at ``obj``, an index of one part, along ``axis``.

    Of ``arr`` as one row for None. Raises ``ArrayIndexError``, ``AxisError`` or ``ShapeError``.
    """
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    at = normalize_axis(axis, arr.ndim)
    count = arr.shape[at]
    part = np.asarray(obj) if isinstance(obj, Array) else obj
    with allocating("obj", count * np.dtype(np.int64).itemsize):
        try:
            kept = np.delete(np.arange(count, dtype=np.int64), part)
        except (IndexError, TypeError, ValueError) as error:
            raise ArrayIndexError(f"obj: {error}; expected an index of {count} slices") from None
    return arr[(*(slice(None),) * at, kept)]


def meshgrid(
    *arrays: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True
) -> list[Array]:
    """Return the coordinates of a grid, an array per axis, from the coordinates along each axis.

    ``indexing``: "xy" exchanges the first two axes. With ``sparse`` an array has length 1 along
    the other axes; without ``copy`` the arrays are views. Raises ``ShapeError``.
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"indexing: {indexing!r}; expected 'xy' or 'ij'")
    sparse, copy = as_truth("sparse", sparse), as_truth("copy", copy)
    here = send_all(arrays)
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


def as_integers(name: str, given: Any) -> np.ndarray[Any, Any]:
    """Return ``given`` as integers on the host.

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


implements(np.meshgrid)(
    lambda *xi, copy=True, sparse=False, indexing="xy": tuple(
        meshgrid(*xi, copy=copy, sparse=sparse, indexing=indexing)
    )
)
