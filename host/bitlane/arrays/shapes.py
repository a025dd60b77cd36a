"""NumPy's functions that change shapes alone: views where NumPy has views."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments.axes import as_list, normalize_axes, normalize_axis
from ..errors import ShapeError
from .array import Array
from .numpy_protocols import implements
from .options import is_fortran

Axes = int | Sequence[int]


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


def unstack(x: Array, axis: int = 0) -> tuple[Array, ...]:
    """Return views of the parts along ``axis``."""
    return tuple(moveaxis(x, normalize_axis(axis, x.ndim), 0))


implements(np.transpose)(lambda a, axes=None: a.transpose(axes))
implements(np.broadcast_to)(lambda array, shape, subok=False: array.broadcast_to(shape))
if hasattr(np, "unstack"):  # since NumPy 2.1
    implements(np.unstack)(unstack)
