"""NumPy's functions on arrays: those that take no arithmetic.

They copy only where a view is impossible.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments.axes import as_list, normalize_axes, normalize_axis
from ..arguments.operands import allocating, as_array, as_integer, oversized
from ..errors import DataTypeError, OutOfRangeError, ShapeError
from ..lowering.strided import broadcast_shapes
from .array import Array, dispatch_where
from .elementwise import to_device
from .masks import choose
from .numpy_protocols import implements
from .operands import as_mask, as_operand
from .options import is_fortran
from .strided import as_shape
from .transfers import download, reserve, upload
from .truth import arrays_equal, count_true
from .value import Value, overwrite

Axes = int | Sequence[int]


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
    kind = dst.dtype if isinstance(given, int) else given.dtype
    if not np.can_cast(kind, dst.dtype, casting):
        raise DataTypeError(f"np.copyto: from {kind} to {dst.dtype}; casting is {casting!r}")
    if not isinstance(dst, Array):
        source = download(given) if isinstance(given, Value) else given
        np.copyto(dst, source, casting=casting, where=np.asarray(where, bool))
    elif (chosen := as_mask(dst.device, where)) is None:
        dst[...] = src
    else:
        value = to_device(dst.device, "src", given, dst.dtype)
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
    return Array(count_true(a._value, axis, keep=keepdims))


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


# --- shapes -------------------------------------------------------------------------------------


@implements(np.reshape)
def _reshape(a: Array, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    return a.reshape(shape, order=order, copy=copy)


@implements(np.ravel)
def _ravel(a: Array, order: str = "C") -> Array:
    """Return the elements as one row: a view if they lie in ``order`` without gaps, else a copy."""
    flat = a.transpose() if is_fortran("np.ravel: order", order, a._value.strided) else a
    return flat.reshape(-1, copy=None if flat._value.strided.contiguous else True)


@implements(np.squeeze)
def squeeze(a: Array, axis: Axes | None = None) -> Array:
    """Drop axes of one element: all of them, or ``axis``. Raises ``ShapeError``."""
    if axis is None:
        axis = [at for at, n in enumerate(a.shape) if n == 1]
    gone = normalize_axes(axis, a.ndim)
    if any(a.shape[at] != 1 for at in gone):
        raise ShapeError(f"axis: {axis} of shape {a.shape}; expected axes of one element")
    return a[(*(0 if at in gone else slice(None) for at in range(a.ndim)), ...)]


@implements(np.expand_dims)
def expand_dims(a: Array, axis: Axes = 0) -> Array:
    """Insert axes of one element at ``axis``. Raises ``AxisError``."""
    count = len(as_list(axis))
    new = normalize_axes(axis, a.ndim + count)
    return a[(*(None if at in new else slice(None) for at in range(a.ndim + count)), ...)]


@implements(np.moveaxis)
def moveaxis(a: Array, source: Axes, destination: Axes) -> Array:
    """Move the axes ``source`` to ``destination``; the others stay in their order."""
    old, new = normalize_axes(source, a.ndim), normalize_axes(destination, a.ndim)
    if len(old) != len(new):
        raise ShapeError(f"destination: {destination}; expected as many axes as {source}")
    order = [at for at in range(a.ndim) if at not in old]
    for to, at in sorted(zip(new, old, strict=True)):
        order.insert(to, at)
    return a.transpose(order)


@implements(np.swapaxes)
def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    """Exchange two axes, which may be the same. Raises ``ShapeError``."""
    order = list(range(a.ndim))
    one, other = normalize_axis(axis1, a.ndim), normalize_axis(axis2, a.ndim)
    order[one], order[other] = other, one
    return a.transpose(order)


@implements(np.flip)
def flip(m: Array, axis: Axes | None = None) -> Array:
    """Reverse the elements along ``axis``, or along all axes."""
    turned = normalize_axes(range(m.ndim) if axis is None else axis, m.ndim)
    steps = (slice(None, None, -1 if at in turned else 1) for at in range(m.ndim))
    return m[(*steps, ...)]


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


def unstack(x: Array, axis: int = 0) -> tuple[Array, ...]:
    """Return views of the parts along ``axis``."""
    return tuple(moveaxis(x, normalize_axis(axis, x.ndim), 0))


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


@implements(np.take)
def take(a: Array, indices: Any, axis: int | None = None) -> Array:
    """Copy the elements at ``indices`` along ``axis``; of ``a`` as one row for None.

    The shape of ``indices`` replaces the axis. Raises ``ArrayIndexError`` or ``AxisError``.
    """
    if axis is None:
        a, axis = a.reshape(-1), 0
    at = normalize_axis(axis, a.ndim)
    whole = _integers("indices", indices)
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
    whole = _integers("indices", indices)
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
    if axis is None:
        a, axis = a.reshape(-1), 0
    at = normalize_axis(axis, a.ndim)
    counts = _integers("repeats", repeats)
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


def meshgrid(
    *arrays: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True
) -> list[Array]:
    """Return the coordinates of a grid, an array per axis, from the coordinates along each axis.

    ``indexing``: "xy" exchanges the first two axes. With ``sparse`` an array has length 1 along
    the other axes; without ``copy`` the arrays are views. Raises ``ShapeError``.
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"indexing: {indexing!r}; expected 'xy' or 'ij'")
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


def _integers(name: str, given: Any) -> np.ndarray[Any, Any]:
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


implements(np.transpose)(lambda a, axes=None: a.transpose(axes))
implements(np.broadcast_to)(lambda array, shape, subok=False: array.broadcast_to(shape))
implements(np.broadcast_arrays)(lambda *arrays, subok=False: tuple(broadcast_arrays(*arrays)))
implements(np.meshgrid)(
    lambda *xi, copy=True, sparse=False, indexing="xy": tuple(
        meshgrid(*xi, copy=copy, sparse=sparse, indexing=indexing)
    )
)
if hasattr(np, "unstack"):  # since NumPy 2.1
    implements(np.unstack)(unstack)
