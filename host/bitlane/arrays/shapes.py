"""NumPy's functions that change shapes alone: views where NumPy has views."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..arguments.axes import as_list, normalize_axes, normalize_axis, reduced_axes
from ..arguments.operands import as_array, as_integer
from ..errors import ShapeError
from .array import Array
from .numpy_protocols import implements
from .strided import Strided, is_integer

Axes = int | Sequence[int]


@implements(np.reshape)
def _reshape(a: Array, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    return a.reshape(shape, order=order, copy=copy)


@implements(np.squeeze)
def squeeze(a: Array, axis: Axes | None = None) -> Array:
    """Drop axes of one element: all of them, or ``axis``. Raises ``ShapeError``."""
    if axis is None:
        axis = tuple([at for at, n in enumerate(a.shape) if n == 1])
    gone = reduced_axes(axis, a.ndim)
    if any(a.shape[at] != 1 for at in gone):
        raise ShapeError(f"axis: {axis} of shape {a.shape}; expected axes of one element")
    return a[(*(0 if at in gone else slice(None) for at in range(a.ndim)), ...)]


@implements(np.expand_dims)
def expand_dims(a: Array, axis: Axes = 0) -> Array:
    """Insert axes of one element at ``axis``. Raises ``AxisError``."""
    if isinstance(axis, tuple | list):
        rank = a.ndim + len(axis)
        new = normalize_axes(axis, rank)
    else:
        rank = a.ndim + 1
        new = (normalize_axis(axis, rank),)
    return a[(*(None if at in new else slice(None) for at in range(rank)), ...)]


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


def along(a: Array, axis: int | None) -> tuple[Array, int]:
    """Return ``a``, as one row for None or if it has no axes, and ``axis`` from 0 on.

    Raises ``AxisError``.
    """
    if axis is None:
        return a.reshape(-1), 0
    row = a if a.ndim else a.reshape(1)
    return row, normalize_axis(axis, row.ndim)


def unstack(x: Array, axis: int = 0) -> tuple[Array, ...]:
    """Return views of the parts along ``axis``."""
    return tuple(moveaxis(x, normalize_axis(axis, x.ndim), 0))


def at_least(x: Any, rank: int) -> Any:
    """Return a view with ``rank`` axes or more, as NumPy's function of that number makes it."""
    if not isinstance(x, Array):
        return (np.atleast_1d, np.atleast_2d, np.atleast_3d)[rank - 1](as_array("arys", x))
    missing = max(0, rank - x.ndim)
    # The third axis comes last, the second one first.
    behind = min(missing, 1) if rank == 3 else 0
    return x[(*(None,) * (missing - behind), ..., *(None,) * behind)]


def _all_at_least(rank: int, arrays: Sequence[Any]) -> Any:
    views = tuple([at_least(x, rank) for x in arrays])
    return views[0] if len(views) == 1 else views


@implements(np.array_split)
def array_split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return views of parts along ``axis``: as many, or cut at indices. Raises ``ShapeError``."""
    at = normalize_axis(axis, ary.ndim)
    count = ary.shape[at]
    if is_integer(indices_or_sections):
        sections = as_integer("indices_or_sections", indices_or_sections)
        if sections < 1:
            raise ShapeError(f"indices_or_sections: {sections}; expected 1 or more")
        size, longer = divmod(count, sections)
        cuts = [part * size + min(part, longer) for part in range(1, sections)]
    else:
        cuts = [as_integer("indices_or_sections", cut) for cut in as_list(indices_or_sections)]
    before = (slice(None),) * at
    return [ary[(*before, slice(start, stop))] for start, stop in pairwise([0, *cuts, count])]


@implements(np.split)
def split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return views of parts along ``axis``: as many of one length, or cut at indices.

    Raises ``ShapeError``.
    """
    count = ary.shape[normalize_axis(axis, ary.ndim)]
    if is_integer(indices_or_sections):
        sections = as_integer("indices_or_sections", indices_or_sections)
        if sections > 0 and count % sections:
            raise ShapeError(
                f"indices_or_sections: {sections}; expected a number that divides {count}"
                " (np.array_split takes others)"
            )
    return array_split(ary, indices_or_sections, axis)


def _split_along(function: str, axis: int, ary: Array, cuts: Any) -> list[Array]:
    """Split along ``axis``; hsplit takes arrays of one axis, too. Raises ``ShapeError``."""
    least = {"hsplit": 1, "vsplit": 2, "dsplit": 3}[function]
    if ary.ndim < least:
        raise ShapeError(f"np.{function}: shape {ary.shape}; expected {least} axes or more")
    return split(ary, cuts, min(axis, ary.ndim - 1))


def _flip_one(function: str, axis: int, m: Array) -> Array:
    if m.ndim <= axis:
        raise ShapeError(f"np.{function}: shape {m.shape}; expected {axis + 1} axes or more")
    return flip(m, axis)


@implements(np.rot90)
def rot90(m: Array, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Return a view turned ``k`` times by a right angle, from the first of two axes to the second.

    Raises ``AxisError`` or ``ShapeError``.
    """
    turned = normalize_axes(axes, m.ndim)
    if len(turned) != 2:
        raise ShapeError(f"axes: {axes}; expected two")
    turns = as_integer("k", k) % 4
    if turns % 2 == 0:
        return flip(m, turned) if turns else m[...]
    if turns == 1:
        return swapaxes(flip(m, turned[1]), *turned)
    return flip(swapaxes(m, *turned), turned[1])


@implements(np.rollaxis)
def rollaxis(a: Array, axis: int, start: int = 0) -> Array:
    """Move ``axis`` before the axis ``start``. Raises ``AxisError``."""
    at = normalize_axis(axis, a.ndim)
    before = as_integer("start", start)
    before = before if before == a.ndim else normalize_axis(before, a.ndim)
    return moveaxis(a, at, before - 1 if at < before else before)


@implements(np.diagonal)
def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return a read-only view of the elements whose index along ``axis2`` is greater by ``offset``.

    They are the last axis. Raises ``AxisError`` or ``ShapeError``.
    """
    if a.ndim < 2:
        raise ShapeError(f"np.diagonal: shape {a.shape}; expected two axes or more")
    rows, columns = normalize_axes((axis1, axis2), a.ndim)
    shift = as_integer("offset", offset)
    key = [slice(None)] * a.ndim
    key[rows], key[columns] = slice(max(0, -shift), None), slice(max(0, shift), None)
    part = a._value.strided.index(tuple(key))
    others = [axis for axis in range(a.ndim) if axis not in (rows, columns)]
    shape = (*(part.shape[x] for x in others), min(part.shape[rows], part.shape[columns]))
    step = part.strides[rows] + part.strides[columns]
    strides = (*(part.strides[x] for x in others), step)
    view = Strided(shape, strides, part.itemsize, part.offset)
    return Array(a._value.view(view, readonly=True))


implements(np.ravel)(lambda a, order="C": a.ravel(order))
implements(np.matrix_transpose)(lambda x, /: x.mT)
implements(np.fliplr)(lambda m: _flip_one("fliplr", 1, m))
implements(np.flipud)(lambda m: _flip_one("flipud", 0, m))
implements(np.atleast_1d)(lambda *arys: _all_at_least(1, arys))
implements(np.atleast_2d)(lambda *arys: _all_at_least(2, arys))
implements(np.atleast_3d)(lambda *arys: _all_at_least(3, arys))
implements(np.hsplit)(
    lambda ary, indices_or_sections: _split_along("hsplit", 1, ary, indices_or_sections)
)
implements(np.vsplit)(
    lambda ary, indices_or_sections: _split_along("vsplit", 0, ary, indices_or_sections)
)
implements(np.dsplit)(
    lambda ary, indices_or_sections: _split_along("dsplit", 2, ary, indices_or_sections)
)
implements(np.transpose)(lambda a, axes=None: a.transpose(axes))
implements(np.broadcast_to)(lambda array, shape, subok=False: array.broadcast_to(shape))
if hasattr(np, "unstack"):  # since NumPy 2.1
    implements(np.unstack)(unstack)
