"""``bitlane.Array``: an array whose elements stay in the device's memory.

The way to the host, and the protocols by which others find what an array can do.
"""

from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from ..errors import CopyError, DataTypeError, MissingError, NotOfferedError, ShapeError
from ..streaming.operands import AnyArray
from .exchange import CPU, capsule
from .functions import apply_function, offers
from .showing import html, summary, text
from .transfers import download
from .value import expect_device, free
from .views import Views


class Array(Views):
    """Elements on a device, which an operation on them leaves there. `Device.asarray` makes one.

    Shapes, types, views and operators are NumPy's, as far as they take no arithmetic. The result
    of an operator is *pending*: it is computed when it is needed, together with what it is made
    of; that is when it is read (``get``, ``np.asarray``), indexed or viewed, or when something is
    about to be written over what it is made of, or when more than 256 operations wait. An operator
    in place is computed at once, unless the array itself is still pending.

    The memory is given back with the last array that shows it. Threads may share an array while
    none writes to it: ``BusyError`` else.
    """

    __slots__ = ()

    def free(self) -> None:
        """Give the memory back now, though arrays show it: ``FreedError`` when they are used.

        Does nothing while pending. Raises ``BusyError`` while another thread uses it, or another
        library shows it.
        """
        free(self._value)

    def get(self, *, out: AnyArray | None = None) -> AnyArray:
        """The elements as a NumPy array, a new one or ``out`` of this very type and shape."""
        if out is None:
            return download(self._value)
        if not isinstance(out, np.ndarray) or out.dtype != self.dtype:
            given = out.dtype if isinstance(out, np.ndarray) else f"of type {type(out).__name__}"
            raise DataTypeError(f"out: {given}; expected an array of {self.dtype}")
        if out.shape != self.shape:
            raise ShapeError(f"out: shape {out.shape}; expected {self.shape}")
        if not out.flags.writeable:
            raise ShapeError("out: the array is read-only")
        np.copyto(out, download(self._value))
        return out

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise CopyError(
                "copy: False; an array on a device comes to the host as a copy (np.from_dlpack"
                " shares the memory of a device that has it here)"
            )
        result = download(self._value)
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

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "ui":
            raise DataTypeError(f"index: {summary(self._value)}; expected an integer without axes")
        return int(self.item())

    def __array_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        return apply_function(function, arguments, options)

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return capsule(self._value, copy, dl_device, stream=stream, max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        namespace: ModuleType = import_module("bitlane.array_api").supporting(api_version)
        return namespace

    def to_device(self, device: Any, /, *, stream: None = None) -> "Array":
        """The same elements on another device, to which they are sent by way of the host."""
        if stream is not None:
            raise NotOfferedError(f"stream: {stream!r}; expected None")
        expect_device(device)
        moved: Array = device.asarray(self)
        return moved

    def __reduce__(self) -> NoReturn:
        raise NotOfferedError(
            "pickle: the elements are on a device; send x.get() to the other process, and open the"
            " device there: bitlane.open(url)"
        )

    def __repr__(self) -> str:
        return text(self._value)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.ndim:
            raise NotOfferedError(
                f"format: {spec!r} for {summary(self._value)}; expected an array without axes"
                " (np.array2string prints others)"
            )
        return format(self.item(), spec)

    def _repr_html_(self) -> str:
        return html(self._value)

    def __getattr__(self, name: str) -> NoReturn:
        if offers(name):
            raise MissingError(f"bitlane.Array has no {name}; np.{name}(x) does it on the device")
        hint = f"; x.get().{name} does it on the host" if hasattr(np.ndarray, name) else ""
        raise MissingError(f"bitlane.Array has no {name}{hint}")
