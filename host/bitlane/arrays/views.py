"""Arrays seen as NumPy's are: shapes, indices, other axes and types, copies, assignments.

Views show the same memory. Nothing comes to the host here.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from ..compiler.nodes import copied as copied_as
from ..compiler.nodes import window
from ..errors import CopyError, DataTypeError, ShapeError
from .base import operand, supported, value_of
from .elementwise import Axes, cast, converted, copied, placed
from .indexing import gather, pick, picks, scatter
from .operators import Operators
from .strided import Strided, shape_of
from .transfers import replace
from .ufuncs import apply_ufunc
from .value import Home, Value, overwrite


class Views(Operators):
    """What has a shape, and parts that can be seen and assigned to."""

    __slots__ = ()

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
        """How many elements there are."""
        return self._value.strided.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._value.strided.nbytes

    @property
    def device(self) -> Home:
        """The device that the elements are on."""
        return self._value.home

    @property
    def pending(self) -> bool:
        """Whether the elements are still to be computed."""
        return self._value.pending

    # --- views ----------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Self:
        if picks(key):
            return type(self)(gather(self._value, pick(self._strided, key)))
        return self._view(self._strided.index(key))

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len: an array without axes has no length; expected one axis or more")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[row] for row in range(len(self)))

    @property
    def T(self) -> Self:
        """The axes the other way round."""
        return self.transpose()

    @property
    def mT(self) -> Self:
        """The last two axes the other way round. Raises ``ShapeError`` if there are fewer."""
        if self.ndim < 2:
            raise ShapeError(f"mT: shape {self.shape}; expected two axes or more")
        return self.transpose(*range(self.ndim - 2), -1, -2)

    def transpose(self, *axes: Any) -> Self:
        """The axes in another order, reversed by default; without a copy."""
        order = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes or None
        return self._view(self._strided.transpose(order))

    def broadcast_to(self, shape: int | Sequence[int]) -> Self:
        """Repeated to ``shape`` without a copy; not to be written to."""
        strided = self._strided.broadcast(shape_of(shape))
        return type(self)(self._value.seen(strided, shown_only=True))

    def reshape(self, *shape: Any, copy: bool | None = None) -> Self:
        """The elements, in C's order, as ``shape``; a copy only where there is no other way.

        ``copy``: True for a copy in any case, False for none: raises ``CopyError`` then.
        """
        wanted = self._strided.fitted(shape[0] if len(shape) == 1 else shape)
        view = None if copy else self._strided.reshape(wanted)
        if view is not None:
            return self._view(view)
        if copy is False:
            raise CopyError(f"reshape: {self.shape} to {wanted} takes a copy of these strides")
        return self.copy()._view(Strided.packed(wanted, self.itemsize))

    def view(self, dtype: DTypeLike) -> Self:
        """The same bytes as another type, of which the last axis has more or fewer.

        Raises ``DataTypeError`` for truth values of numbers: their bytes would not all be 0 or 1,
        which sums and inversions of truth values rely on.
        """
        kind = supported(dtype)
        if kind.kind == "b" and self.dtype.kind != "b":
            raise DataTypeError(
                f"view: from {self.dtype} to bool; expected bytes that are 0 or 1, which"
                " astype(bool) makes"
            )
        return self._view(self._strided.recast(kind.itemsize), kind)

    # --- sums -----------------------------------------------------------------------------------

    def sum(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: Any = None,
        keepdims: bool = False,
    ) -> Any:
        """The sums along ``axis`` of counts of bits, or of truth values, as uint32.

        The device has no other adder: raises ``NotOfferedError`` for other arrays. Of counts that
        are pending it is one pass over memory, with the operations before it; of those that are
        computed, or of views of them, it is up to four.
        """
        options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, "out": (out,)}
        return apply_ufunc(np.add, "reduce", (self,), options)

    # --- copies ---------------------------------------------------------------------------------

    def copy(self) -> Self:
        """The same elements in memory of their own, in C's order."""
        in_c_order = copied_as(self._value.node, tuple(range(self.ndim)))
        return type(self)(self._value.derived(in_c_order))

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Self:
        """The elements as another integer type or truth values, on the device.

        Without ``copy`` it may be the array itself. Raises ``DataTypeError`` for floats.
        """
        kind = supported(dtype)
        if kind == self.dtype and not copy:
            return self
        return type(self)(copied(cast(self._value, kind)))

    def __copy__(self) -> Self:
        return type(self)(copied(self._value))

    def __deepcopy__(self, _: object) -> Self:
        return self.__copy__()

    def __setitem__(self, key: Any, value: Any) -> None:
        given = operand("value", value)
        if picks(key):
            picked = pick(self._strided, key)
            source = placed(self.device, "value", given, self.dtype)
            scatter(self._value, picked, _without_extra_axes(source, len(picked.shape)))
            return
        target = value_of(self[key])
        in_c_order = target.strided.contiguous
        if isinstance(given, np.ndarray) and given.shape == target.shape and in_c_order:
            replace(target, converted("value", given, self.dtype))
            return
        source = placed(target.home, "value", given, self.dtype)
        overwrite(target, _without_extra_axes(source, len(target.shape)))

    @property
    def _strided(self) -> Strided:
        return self._value.strided

    def _view(self, strided: Strided, dtype: np.dtype[Any] | None = None) -> Self:
        return type(self)(self._value.seen(strided, dtype))


def _without_extra_axes(source: Value, rank: int) -> Value:
    """``source`` without its first axes beyond ``rank`` if they count one element, as in NumPy."""
    extra = max(0, len(source.shape) - rank)
    if set(source.shape[:extra]) != {1}:
        return source
    node = source.node
    return source.derived(window(node, 0, node.shape[extra:], node.strides[extra:]))
