"""The base of ``bitlane.Array``: shape, type and views of elements on a device."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from ..arguments.operands import as_truth
from ..compiler import copy_ordered
from ..errors import CopyError, DataTypeError, ShapeError
from .elementwise import as_dtype
from .flags import Flags
from .options import expect_default, is_fortran, order_axes, reading_axes
from .strided import Strided, as_shape, is_integer
from .value import DeviceLike, Value


class ArrayBase:
    """Elements on a device with their shape and type, of which views can be made."""

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: Value) -> None:
        self._value = value

    def _of(self, value: Value) -> Self:
        return type(self)(value)

    # --- shape and type -------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._value.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from an element to the next along each axis, in the device's memory."""
        return self._value.node.strides

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._value.strided.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._value.strided.nbytes

    @property
    def device(self) -> DeviceLike:
        """The device that the elements are on."""
        return self._value.device

    @property
    def pending(self) -> bool:
        """Whether the elements are still to be computed."""
        return self._value.pending

    # --- views and copies -----------------------------------------------------------------------

    @property
    def T(self) -> Self:
        """The array with its axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> Self:
        """The array with its last two axes exchanged. Raises ``ShapeError`` if it has fewer."""
        if self.ndim < 2:
            raise ShapeError(f"mT: shape {self.shape}; expected two axes or more")
        return self.transpose(*range(self.ndim - 2), -1, -2)

    def transpose(self, *axes: Any) -> Self:
        """Return a view with the axes in another order, reversed by default."""
        order = axes[0] if len(axes) == 1 and not is_integer(axes[0]) else axes or None
        return self._view(self._value.strided.transpose(order))

    def broadcast_to(self, shape: int | Sequence[int]) -> Self:
        """Return a read-only view that repeats the elements to ``shape``."""
        strided = self._value.strided.broadcast(as_shape(shape))
        return self._of(self._value.view(strided, readonly=True))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Self:
        """Return the elements as ``shape``; a copy only where a view cannot be.

        ``order``: "C" takes and places them with the last axis innermost, "F" with the first one.
        ``copy``: True for a copy in any case, False for none: raises ``CopyError`` then.
        """
        if isinstance(copy, str):
            raise DataTypeError(f"copy: {copy!r}; expected True, False or None")
        always = as_truth("copy", copy)
        strided = self._value.strided
        wanted = strided.infer_shape(shape[0] if len(shape) == 1 else shape)
        if is_fortran(order, strided):
            return self.transpose().reshape(wanted[::-1], copy=copy).transpose()
        view = None if always else strided.reshape(wanted)
        if view is not None:
            return self._view(view)
        if copy is not None and not always:
            raise CopyError(f"reshape: {self.shape} to {wanted} takes a copy of these strides")
        return self.copy()._view(Strided.packed(wanted, self.itemsize))

    def view(self, dtype: DTypeLike | None = None, type: Any = None) -> Self:  # noqa: A002, NumPy's
        """Return the same bytes as another type; the last axis has more or fewer elements then.

        A view of booleans as numbers is read-only, and ``DataTypeError`` is raised for numbers as
        booleans, as on a device the bytes of booleans are 0 and 1, and for a foreign byte order.
        """
        expect_default("view", "type", type, None)
        if dtype is None:
            dtype = self.dtype
        kind = as_dtype(dtype)
        if not np.dtype(dtype).isnative:
            raise DataTypeError(
                f"view: {np.dtype(dtype)}; expected the byte order of the device, as in {kind}"
                " (astype keeps the values; x.get().view(...) reorders the bytes on the host)"
            )
        if kind.kind == "b" and self.dtype.kind != "b":
            raise DataTypeError(
                f"view: from {self.dtype} to bool; expected bytes that are 0 or 1, which"
                " astype(bool) makes"
            )
        numbers = self.dtype.kind == "b" != kind.kind
        strided = self._value.strided.recast(kind.itemsize)
        return self._of(self._value.view(strided, kind, readonly=numbers))

    def _view(self, strided: Strided, dtype: np.dtype[Any] | None = None) -> Self:
        return self._of(self._value.view(strided, dtype))

    def ravel(self, order: str = "C") -> Self:
        """Return the elements as one row: a view if ``order`` has no gaps in memory, else a copy.

        ``order``: "C", "F", "A" or "K", as NumPy's. Raises ``ShapeError``.
        """
        ordered = self.transpose(reading_axes(order, self._value.strided))
        return ordered.reshape(-1, copy=None if ordered._value.strided.contiguous else True)

    def flatten(self, order: str = "C") -> Self:
        """Return a copy of the elements as one row, taken in ``order`` as by `ravel`."""
        return self.transpose(reading_axes(order, self._value.strided)).reshape(-1, copy=True)

    @property
    def flags(self) -> Flags:
        """The layout in memory, which NumPy's arrays tell, too."""
        strided = self._value.strided
        writeable = not self._value.readonly
        return Flags(strided.contiguous, strided.transpose().contiguous, writeable)

    def copy(self, order: str = "C") -> Self:
        """Return a copy of the elements in memory ``order``: "C", "F", "A" or "K", as NumPy's."""
        return self._of(copy_in_order(self._value, order))


def copy_in_order(value: Value, order: str) -> Value:
    """Return a copy of ``value`` in memory ``order``. Raises ``ShapeError``."""
    axes = order_axes(order, value.strided)
    return value.derived(copy_ordered(value.node, axes))
