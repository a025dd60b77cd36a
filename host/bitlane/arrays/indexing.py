"""Advanced indexing: the elements that arrays of indices select.

Arithmetic on shapes, strides and indices: no memory, no device, and no element of an array.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import gcd, prod
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._typing import AnyArray
from ..arguments.operands import allocating, oversized
from ..errors import ArrayIndexError, ShapeError
from ..lowering import BlockOffsets, ByteOffsets, broadcast_shapes, packed_strides
from ..lowering.offsets import MaskedOffsets, NumberedOffsets
from .strided import Strided, parse_part

_Part: TypeAlias = "AnyArray | slice | EllipsisType | None"


@dataclass(frozen=True)
class Selection:
    """Elements of ``view`` that ``indices``, which broadcast, select along ``axes``."""

    view: Strided
    axes: tuple[int, ...]
    indices: tuple[NDArray[np.int64], ...]
    position: int
    """The first axis of the indices in the result."""

    @cached_property
    def index_shape(self) -> tuple[int, ...]:
        """The shape that the indices broadcast to."""
        return _common_shape(self.indices)

    @cached_property
    def rest(self) -> Strided:
        """The elements that the indices (0, 0, ...) select."""
        view = self.view
        kept = [axis for axis in range(len(view.shape)) if axis not in self.axes]
        return _keep_axes(view, kept)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        rest = self.rest.shape
        return (*rest[: self.position], *self.index_shape, *rest[self.position :])

    @property
    def offsets(self) -> BlockOffsets:
        """The offset from element 0 of the whole array to each selected one, in C's order.

        Of one selected element or more.
        """
        strides = [self.view.strides[axis] for axis in self.axes]
        unit = gcd(*strides) or self.view.itemsize
        with allocating("index", prod(self.index_shape) * np.dtype(np.int64).itemsize):
            steps = [
                index if step == unit else index * (step // unit)
                for index, step in zip(self.indices, strides, strict=True)
            ]
            found = NumberedOffsets.of(reduce(np.add, steps).reshape(-1), unit)
            return replace(found, first=found.first + self.view.offset)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the result, with the axes of indices outermost in memory, as NumPy's."""
        rest, size = self.rest, self.view.itemsize
        inside = packed_strides(self.index_shape, itemsize=size * rest.size)
        around = packed_strides(rest.shape, itemsize=size)
        return (*around[: self.position], *inside, *around[self.position :])

    def split(self, result: Strided) -> tuple[Strided, Strided]:
        """Split ``result``, which has `shape`, into its axes of indices and its other axes."""
        inside = range(self.position, self.position + len(self.index_shape))
        return (
            _keep_axes(result, inside),
            _keep_axes(result, [at for at in range(len(result.shape)) if at not in inside]),
        )


@dataclass(frozen=True)
class MaskSelection(Selection):
    """Elements that ``mask``, of one axis, selects along the first axes of ``view``.

    These axes are equal to one with steps of ``step`` bytes, more than 0. ``indices`` is empty.
    """

    mask: NDArray[np.bool_]
    step: int
    count: int
    """The number of selected elements."""

    @cached_property
    def index_shape(self) -> tuple[int, ...]:
        return (self.count,)

    @property
    def offsets(self) -> BlockOffsets:
        found = MaskedOffsets.of(self.mask, self.step, self.count)
        return replace(found, first=found.first + self.view.offset)


def _select_by_mask(strided: Strided, part: _Part) -> MaskSelection | None:
    """Return the selection of one mask as the whole index, if its axes are equal to one."""
    if not isinstance(part, np.ndarray) or part.dtype.kind != "b" or not part.size:
        return None
    axes = tuple(range(part.ndim))
    if not axes or part.shape != strided.shape[: part.ndim]:
        return None
    merged = _keep_axes(strided, axes).reshape((part.size,))
    if merged is None or merged.strides[0] <= 0:
        return None
    flat = part.reshape(-1)
    return MaskSelection(strided, axes, (), 0, flat, merged.strides[0], int(np.count_nonzero(flat)))


def _keep_axes(strided: Strided, axes: Sequence[int]) -> Strided:
    shape, strides = (tuple([x[at] for at in axes]) for x in (strided.shape, strided.strides))
    return Strided(shape, strides, strided.itemsize, strided.offset)


def offsets_of(strided: Strided) -> ByteOffsets:
    """Return the bytes from element 0 to each element, in C's order."""
    total = np.zeros((), np.int64)
    for count, stride in zip(strided.shape, strided.strides, strict=True):
        total = total[..., None] + np.arange(count, dtype=np.int64) * stride
    return total.reshape(-1)


def is_advanced(key: Any) -> bool:
    """Return whether ``key`` holds a list, truth values, or an array with axes."""
    return any(map(_is_array, key if isinstance(key, tuple) else (key,)))


def selects_copy(key: Any) -> bool:
    """Return whether ``key`` holds an array of NumPy without axes, which selects a copy."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, np.ndarray) and not part.ndim for part in parts)


def is_whole_mask(strided: Strided, key: Any) -> bool:
    """Return whether ``key`` is one array of truth values for all axes of ``strided``."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) != 1:
        return False
    mask: Any = parts[0] if hasattr(parts[0], "dtype") else _parse(parts[0])
    return (
        hasattr(mask, "dtype") and mask.dtype.kind == "b" and len(mask.shape) == len(strided.shape)
    )


def _is_array(part: Any) -> bool:
    if isinstance(part, bool | np.bool_ | range):
        return True
    if hasattr(part, "dtype"):
        return bool(part.ndim or part.dtype.kind == "b")
    return isinstance(part, Sequence) and not isinstance(part, str | bytes)


def select(strided: Strided, key: Any) -> Selection:
    """Return the elements that ``key`` selects from ``strided`` by NumPy's rules.

    Raises ``ArrayIndexError``, or what `Strided.index` does.
    """
    parts = [_parse(part) for part in (key if isinstance(key, tuple) else (key,))]
    if len(parts) == 1 and (by_mask := _select_by_mask(strided, parts[0])):
        return by_mask
    taken = sum(map(_axes_taken, parts))
    rank = len(strided.shape)
    dots = [at for at, part in enumerate(parts) if isinstance(part, EllipsisType)]
    if len(dots) > 1:
        raise ArrayIndexError("index: more than one ...; expected one at most")
    if taken > rank:
        raise ArrayIndexError(f"index: {taken} axes; the array has {rank}")
    plain: list[slice | None] = []
    axes: list[int] = []
    indices: list[AnyArray] = []
    limits: list[tuple[int, int] | None] = []
    axis = 0
    for part in parts if dots else (*parts, ...):
        count = rank - taken if isinstance(part, EllipsisType) else _axes_taken(part)
        if isinstance(part, np.ndarray):
            found = _as_indices(part, strided.shape[axis : axis + count], axis)
            axes += range(len(plain), len(plain) + len(found))
            indices += found
            by_truth = part.dtype.kind == "b"
            limits += [None] * len(found) if by_truth else [(axis, strided.shape[axis])]
        # Axes that arrays index stay whole; a truth value without axes indexes a new one.
        if part is None or isinstance(part, slice):
            plain.append(part)
        elif isinstance(part, np.ndarray) and not count:
            plain.append(None)
        else:
            plain += [slice(None)] * count
        axis += count
    where = [at for at, part in enumerate(parts) if isinstance(part, np.ndarray)]
    together = where[-1] - where[0] + 1 == len(where)
    view = strided.index(tuple(plain))
    with allocating("index", sum(index.size for index in indices) * np.dtype(np.int64).itemsize):
        whole = _wrap_negative(indices, limits)
    return Selection(view, tuple(axes), whole, axes[0] if together else 0)


def _parse(part: Any) -> _Part:
    """Return integers and arrays as arrays of integers or truth values."""
    if not _is_array(part):
        plain = parse_part(part)
        return np.asarray(plain) if isinstance(plain, int) else plain
    try:
        array = np.asarray(part)
    except ValueError:
        raise ArrayIndexError("index: lists of different lengths; expected alike") from None
    if not array.size and not hasattr(part, "dtype"):
        # Without elements, NumPy's type of a list is float64.
        array = array.astype(np.int64)
    if array.dtype.kind not in "uib":
        if (number := oversized(array)) is not None:
            raise ArrayIndexError(f"index: {number}; expected integers of 64 bits")
        raise ArrayIndexError(
            f"index: an array of {array.dtype}; expected integers or truth values"
        )
    return array


def _axes_taken(part: _Part) -> int:
    if isinstance(part, np.ndarray):
        return part.ndim if part.dtype.kind == "b" else 1
    return int(isinstance(part, slice))


def _as_indices(part: AnyArray, shape: tuple[int, ...], axis: int) -> list[AnyArray]:
    """Return the indices of ``part``, an array for each axis of ``shape``, from ``axis`` on."""
    if part.dtype.kind != "b":
        return [part]
    # As in NumPy, no mask selects from an axis along which it has no elements.
    if any(count not in (0, n) for count, n in zip(part.shape, shape, strict=True)):
        raise ArrayIndexError(
            f"index: truth values of shape {part.shape} for axis {axis}; expected {shape}"
        )
    return list(np.nonzero(part)) if shape else [np.zeros(int(part), np.int64)]


def _common_shape(indices: Sequence[AnyArray]) -> tuple[int, ...]:
    """Return the shape that ``indices`` broadcast to. Raises ``ShapeError``."""
    start: tuple[int, ...] = ()
    return reduce(broadcast_shapes, (index.shape for index in indices), start)


def _wrap_negative(
    indices: list[AnyArray], limits: list[tuple[int, int] | None]
) -> tuple[NDArray[np.int64], ...]:
    """Return ``indices``, which broadcast, from 0 on; ``limits``: the axis and length of each.

    Those without limits are from 0 on. Raises ``ArrayIndexError``.
    """
    try:
        shape = _common_shape(indices)
    except ShapeError:
        shapes = ", ".join(str(index.shape) for index in indices)
        raise ArrayIndexError(f"index: arrays of shapes {shapes} do not broadcast") from None
    whole = []
    for index, limit in zip(indices, limits, strict=True):
        if limit is not None and index.size:
            index = _wrap(index, *limit, checked=not (index.ndim and 0 in shape))
        whole.append(index.astype(np.int64, copy=False))
    return tuple(whole)


def _wrap(index: AnyArray, axis: int, count: int, *, checked: bool) -> AnyArray:
    """Return ``index``, of one element or more, from 0 on; only if it is ``checked``, it is right.

    As in NumPy, arrays may hold any indices if nothing is selected. Raises ``ArrayIndexError``.
    """
    # Repeated elements are copied first: if memory does not hold them, looking at all would last.
    index = np.asarray(index, order="C")
    low, high = int(index.min()), int(index.max())
    if checked and (low < -count or high >= count):
        outside = index[(index < -count) | (index >= count)]
        known = f"expected {-count} to {count - 1}" if count else "it has no elements"
        raise ArrayIndexError(f"index: {outside[0]} for axis {axis} of {count}; {known}")
    if low >= 0:
        return index
    wide = index.astype(np.int64)
    return np.where(wide < 0, wide + count, wide)
