"""Buffers: pieces of the device's memory that tensors are bound to.

Moves bytes between host and device, and checks that they stay inside the buffer. Never computes.
"""

from numbers import Integral
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..closeable import Closeable
from ..driver import Driver, Storage
from ..errors import DmlError, DmlTypeError
from .refusals import as_data

PIECE = 1 << 20
"""Bytes that are packed at once in the host's memory."""


class Parent(Protocol):
    """``Device``, as the objects that it created know it."""

    @property
    def driver(self) -> Driver: ...

    def create_buffer(self, size: int) -> "Buffer": ...


class Buffer(Closeable):
    """A buffer of ``Device.create_buffer``; its contents are undefined until they are written.

    ``size_in_bytes`` is the size asked for, rounded up to a multiple of 4: DirectML binds whole
    32-bit words. Offsets are in bytes. Its memory is given back by ``close``, at the end of a
    ``with`` statement, or with the last reference: bindings, tables and command lists hold it.
    """

    def __init__(self, device: Parent, size: int) -> None:
        self.device = device
        self.size_in_bytes = (size + 3) // 4 * 4
        self._storage = Storage(device.driver, self.size_in_bytes)

    @property
    def address(self) -> int:
        """Where the buffer starts in the device's memory."""
        return self._storage.address

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"at {self.address:#x}"
        return f"<bitlane.dml.Buffer: {self.size_in_bytes} bytes, {where}>"

    @property
    def closed(self) -> bool:
        """Whether the memory has been given back."""
        return self._storage.closed

    def write(self, data: npt.ArrayLike, offset: int = 0) -> None:
        """Copy the bytes of ``data``, in C order, to ``offset``.

        Raises ``DmlError`` if they do not fit, or if the buffer has been closed.
        """
        array = as_data("Buffer", data)
        if array.dtype.hasobject:
            raise DmlTypeError("Buffer", "Data", data, "an array of numbers")
        self._check(offset, array.nbytes)
        if array.nbytes == 0:
            return
        address = self.address + offset
        if array.flags.c_contiguous:
            self.device.driver.write(address, array.reshape(-1).view(np.uint8))
            return
        count = max(1, PIECE // array.itemsize)
        for start in range(0, array.size, count):
            piece = array.flat[start : start + count]
            self.device.driver.write(address + start * array.itemsize, piece.view(np.uint8))

    def read(
        self, size: int | None = None, offset: int = 0, dtype: npt.DTypeLike = np.uint8
    ) -> npt.NDArray[np.generic]:
        """A copy of ``size`` bytes from ``offset`` as a one-dimensional array of ``dtype``.

        Without ``size``, all bytes to the end of the buffer that make up whole elements. Raises
        ``DmlError`` if the bytes are not all in the buffer, or if it has been closed, and
        ``ValueError`` if ``size`` is no multiple of the element.
        """
        try:
            itemsize = np.dtype(dtype).itemsize
        except TypeError:
            itemsize = 0
        if not itemsize:
            raise DmlTypeError("Buffer", "DataType", dtype, "a NumPy type with a size") from None
        if size is None:
            self._check(offset, 0)
            size = (self.size_in_bytes - offset) // itemsize * itemsize
        self._check(offset, size)
        if size % itemsize:
            raise ValueError(f"{size} bytes are not a whole number of {np.dtype(dtype)}")
        if size == 0:
            return np.empty(0, dtype)
        data = self.device.driver.read(self.address + offset, size)
        return (data if data.flags.writeable else data.copy()).view(dtype)

    def close(self) -> None:
        """Give the memory back. Closing twice is harmless."""
        self._storage.close()

    def _check(self, offset: int, size: int) -> None:
        if self.closed:
            raise DmlError("Buffer", "State", "closed", "a buffer that has not been closed")
        for field, value in (("Offset", offset), ("SizeInBytes", size)):
            if not isinstance(value, Integral):
                raise DmlTypeError("Buffer", field, value, "an integer")
        if offset < 0 or size < 0 or offset + size > self.size_in_bytes:
            raise DmlError(
                "Buffer",
                "Range",
                f"{size} bytes at offset {offset}",
                f"bytes inside the buffer's {self.size_in_bytes}",
            )
