"""``bitlane.Array``: an array whose elements stay in the device's memory.

Views, conversions and assignments. Brings elements to the host only when asked to.
"""

from collections.abc import Iterator, Sequence
from operator import index as as_index
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import DTypeLike

from ..errors import CopyError, MissingError
from ..expression.form import broadcast, window
from ..jobs.operands import AnyArray, DataTypeError, ShapeError
from .base import operand, supported
from .casts import cast
from .operations import copied, placed
from .operators import Operators
from .strided import Strided
from .transfers import download, empty
from .value import Home, Value, compute, overwrite

__all__ = ["Array"]


class Array(Operators):
    """Elements on a device, which an operation on them leaves there. `Device.asarray` makes one.

    Shapes, types, views and operators are NumPy's, as far as they take no arithmetic. The result
    of an operator is *pending*: it is computed when it is needed, together with what it is made
    of; that is when it is read (``get``, ``np.asarray``), indexed or viewed, or when something is
    about to be written over what it is made of. Operators in place are computed at once.

    The memory is given back with the last array that shows it. Threads may share an array while
    none writes to it: ``BusyError`` else.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from an element to the next along each axis, in the device's memory."""
        return self.value.node.strides

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.value.strided.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.value.strided.nbytes

    @property
    def device(self) -> Home:
        """The device that the elements are on."""
        return self.value.home

    @property
    def pending(self) -> bool:
        """Whether the elements are still to be computed."""
        return self.value.pending

    # --- to the host ----------------------------------------------------------------------------

    def get(self, *, out: AnyArray | None = None) -> AnyArray:
        """The elements as a NumPy array, a new one or ``out`` of this very type and shape."""
        if out is None:
            return download(self.value)
        if not isinstance(out, np.ndarray) or out.dtype != self.dtype:
            kind = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
            raise DataTypeError(f"out: {kind}; expected an array of {self.dtype}")
        if out.shape != self.shape or not out.flags.writeable:
            raise ShapeError(f"out: shape {out.shape}; expected {self.shape}, to be written to")
        np.copyto(out, download(self.value))
        return out

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise CopyError(
                "copy: False; an array on a device comes to the host as a copy (np.from_dlpack"
                " shares the memory of a device that has it here)"
            )
        result = download(self.value)
        return result if dtype is None else result.astype(dtype, copy=False)

    def item(self) -> Any:
        """The only element, as a Python number. Raises ``ShapeError`` if there are others."""
        if self.size != 1:
            raise ShapeError(f"x: {self.size} elements; expected one (x.get() has all)")
        return self.get().item()

    def tolist(self) -> Any:
        """The elements as Python numbers, in lists."""
        return self.get().tolist()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "ui":
            raise DataTypeError(f"index: {self!r}; expected an integer without axes")
        return int(self.item())

    # --- views ----------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Self:
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

    def transpose(self, *axes: Any) -> Self:
        """The axes in another order, reversed by default; without a copy."""
        order = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes or None
        return self._view(self._strided.transpose(order))

    def broadcast_to(self, shape: int | Sequence[int]) -> Self:
        """Repeated to ``shape`` without a copy; not to be written to."""
        wanted = tuple(as_index(n) for n in (shape if isinstance(shape, Sequence) else (shape,)))
        return self._view(self._strided.broadcast(wanted))

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
        return type(self)(self._in_c_order())._view(Strided.packed(wanted, self.itemsize))

    def view(self, dtype: DTypeLike) -> Self:
        """The same bytes as another type, of which the last axis has more or fewer."""
        kind = supported(dtype)
        return self._view(self._strided.recast(kind.itemsize), kind)

    # --- copies ---------------------------------------------------------------------------------

    def copy(self) -> Self:
        """The same elements in memory of their own."""
        return type(self)(copied(self.value))

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Self:
        """The elements as another integer type or truth values, on the device.

        Without ``copy`` it may be the array itself. Raises ``DataTypeError`` for floats.
        """
        kind = supported(dtype)
        if kind == self.dtype and not copy:
            return self
        return type(self)(copied(cast(self.value, kind)))

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key].value
        source = placed(target.home, "value", operand("value", value), self.dtype)
        broadcast(source.node, target.shape)
        if target.strided.size:
            overwrite(target, source)

    def __repr__(self) -> str:
        pending = ", pending" if self.pending else ""
        return f"<bitlane.Array: shape {self.shape}, {self.dtype}, on {self.device!r}{pending}>"

    def __getattr__(self, name: str) -> NoReturn:
        hint = f"; x.get().{name} does it on the host" if hasattr(np.ndarray, name) else ""
        raise MissingError(f"bitlane.Array has no {name}{hint}")

    @property
    def _strided(self) -> Strided:
        return self.value.strided

    def _view(self, strided: Strided, dtype: np.dtype[Any] | None = None) -> Self:
        """The same memory seen another way; computes what it is to hold."""
        compute(self.value)
        node = window(
            self.value.node, strided.offset, strided.shape, strided.strides, strided.itemsize
        )
        return type(self)(self.value.derived(node, dtype))

    def _in_c_order(self) -> Value:
        """A copy whose elements lie in C's order."""
        value = empty(self.value.home, self.shape, self.dtype)
        overwrite(value, self.value)
        return value
