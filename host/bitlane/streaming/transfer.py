"""Arrays on their way to the device and back: sent with their gaps, or packed first."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from bitlane_rtl.abi import Mode

from .._typing import AnyArray
from ..arguments.operands import as_unsigned, is_device_order, little_endian
from ..driver import Geometry
from ..lowering import broadcast_strides, order_of, packed_strides, span
from ..lowering.routes import LANES


def rows_of(array: AnyArray, axes: Sequence[int], itemsize: int, geometry: Geometry) -> AnyArray:
    """Return ``array``, not empty, with ``axes`` as one, the last; axes that repeat still do.

    ``itemsize``: bytes of an element on the device. A copy if the axes do not merge, or if the
    circuit lacks the means to walk them.
    """
    count = len(axes)
    moved = np.moveaxis(array, axes, range(array.ndim - count, array.ndim))
    outer = moved.ndim - count
    # Elements that repeat are copied once.
    once = [slice(1 if step == 0 else None) for step in moved.strides[:outer]]
    lean = moved[(*once, ...)]
    lean = lean.reshape(*lean.shape[:outer], -1)
    if not _is_run(lean, itemsize, geometry):
        lean = np.ascontiguousarray(lean)
    return np.broadcast_to(lean, (*moved.shape[:outer], lean.shape[-1]))


def _is_run(rows: AnyArray, itemsize: int, geometry: Geometry) -> bool:
    step = rows.strides[-1]
    if rows.shape[-1] == 1 or step == rows.itemsize:
        return True
    mode = Mode.STRIDED if step else Mode.REPEAT
    by_elements = LANES[itemsize] in geometry.lanes and itemsize <= geometry.data_bytes
    return mode in geometry.modes and by_elements


_SPREAD: Final = 2
"""Largest ratio of an array's span to its own bytes with which its gaps are sent, too."""


class Source(NamedTuple):
    """Layout of an array on the host, as far as sending it depends on it."""

    strides: tuple[int, ...]
    itemsize: int
    """Bytes of an element on the device."""
    ready: bool
    """Whether elements can be sent as they are."""
    dtype: np.dtype[Any] | None
    """Type that elements are converted to, or None."""


def source_of(array: AnyArray, dtype: np.dtype[Any] | None = None) -> Source:
    """Return the layout of ``array``.

    ``dtype``: the type to convert to, of the native byte order; None for the array's own. Booleans
    are converted to booleans, as their bytes may be others than 0 and 1.
    """
    if dtype is None or array.dtype == dtype or little_endian(array.dtype) == little_endian(dtype):
        if array.dtype.kind == "b":
            return Source(array.strides, array.itemsize, False, array.dtype)
        return Source(array.strides, array.itemsize, is_device_order(array), None)
    return Source(array.strides, dtype.itemsize, False, dtype)


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of an input in the device's memory, in bytes."""

    size: int
    first: int
    """Offset of element 0."""
    strides: tuple[int, ...]
    """Strides; 0 along axes that repeat, which are sent once."""
    raw: bool
    """Whether the bytes are those of the array's own memory, from its lowest element on."""
    dtype: np.dtype[Any] | None = None
    """Type that elements are converted to on their way."""

    @staticmethod
    @lru_cache(maxsize=512)
    def of(source: Source, shape: tuple[int, ...], raw: bool | None = None) -> "Layout":
        """Return the layout of an array, or of a tile of it, of ``shape`` elements.

        ``raw`` prescribes the choice that is otherwise made by the array's density.
        """
        itemsize = source.itemsize
        once = tuple([1 if step == 0 else n for n, step in zip(shape, source.strides, strict=True)])
        own = broadcast_strides(once, source.strides, once)
        distinct = itemsize * prod(once)
        if source.ready and not any(step % itemsize for step in own):
            reach = span(once, own, itemsize)
            if len(reach) <= _SPREAD * distinct if raw is None else raw:
                return Layout(len(reach), -reach.start, own, True)
        packed = packed_strides(once, order_of(source.strides), itemsize)
        strides = broadcast_strides(once, packed, once)
        return Layout(distinct, 0, strides, False, source.dtype)

    def content(self, array: AnyArray) -> NDArray[np.uint8]:
        """Return the bytes to send for ``array`` in this layout. Copies only to pack."""
        if self.raw:
            return _memory(array, self.size)
        distinct = array[(*(slice(1 if stride == 0 else None) for stride in array.strides), ...)]
        packed = np.empty(self.size, np.uint8)
        itemsize = distinct.itemsize if self.dtype is None else self.dtype.itemsize
        strides = packed_strides(distinct.shape, order_of(array.strides), itemsize)
        target = np.ndarray(distinct.shape, f"<u{itemsize}", packed, strides=strides)
        if self.dtype is None:
            np.copyto(target, as_unsigned(distinct))
        elif self.dtype.kind == "b":
            np.copyto(target.view(np.bool_), distinct.view(np.uint8), casting="unsafe")
        else:
            np.copyto(target.view(self.dtype.newbyteorder("<")), distinct)
        return packed


def _memory(array: AnyArray, size: int) -> NDArray[np.uint8]:
    """Return the ``size`` bytes of memory that ``array`` spans."""
    if array.flags.c_contiguous:
        return array.reshape(-1).view(np.uint8)
    lowest = array[tuple(slice(None, None, -1 if stride < 0 else 1) for stride in array.strides)]
    elements = as_strided(lowest, (size // array.itemsize,), (array.itemsize,))
    return elements.view(np.uint8)


def store(content: NDArray[np.uint8], target: AnyArray, strides: tuple[int, ...]) -> None:
    """Copy elements of the device, packed with these ``strides``, to ``target``."""
    if is_device_order(target) and target.strides == strides:
        _memory(target, content.size)[:] = content
    else:
        packed = np.ndarray(target.shape, f"<u{target.itemsize}", content, strides=strides)
        np.copyto(as_unsigned(target), packed)
