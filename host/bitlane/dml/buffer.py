"""Buffers: pieces of the device's memory that tensors are bound to.

Moves bytes between host and device, and checks that they stay inside the buffer. Never computes.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from ..errors import DmlError

if TYPE_CHECKING:
    from .device import Device

__all__ = ["Buffer"]


class Buffer:
    """A buffer of ``Device.create_buffer``; its contents are undefined until they are written.

    ``size_in_bytes`` is the size asked for, rounded up to a multiple of 4: DirectML binds whole
    32-bit words. Offsets are in bytes. A buffer may be used in a ``with`` statement.
    """

    def __init__(self, device: "Device", size: int) -> None:
        self.device = device
        self.size_in_bytes = (size + 3) // 4 * 4
        self._allocation = device.runtime.allocate(self.size_in_bytes)
        self._closed = False

    @property
    def address(self) -> int:
        """Where the buffer starts in the device's memory."""
        return self._allocation.address

    @property
    def closed(self) -> bool:
        """Whether the memory has been given back."""
        return self._closed

    def write(self, data: npt.ArrayLike, offset: int = 0) -> None:
        """Copy the bytes of ``data``, in C order, to ``offset``.

        Raises ``DmlError`` if they do not fit, or if the buffer has been closed.
        """
        array = np.ascontiguousarray(data)
        values = array.reshape(-1).view(np.uint8)
        self._check(offset, values.size)
        if values.size:
            self.device.runtime.write(self.address + offset, values)

    def read(
        self, size: int | None = None, offset: int = 0, dtype: npt.DTypeLike = np.uint8
    ) -> npt.NDArray[np.generic]:
        """A copy of ``size`` bytes from ``offset`` as a one-dimensional array of ``dtype``.

        Without ``size``, all bytes to the end of the buffer that make up whole elements. Raises
        ``DmlError`` if the bytes are not all in the buffer, or if it has been closed, and
        ``ValueError`` if ``size`` is no multiple of the element.
        """
        itemsize = np.dtype(dtype).itemsize
        if size is None:
            size = max(self.size_in_bytes - offset, 0) // itemsize * itemsize
        self._check(offset, size)
        if size % itemsize:
            raise ValueError(f"{size} bytes are no whole number of {np.dtype(dtype)}")
        if size == 0:
            return np.empty(0, dtype)
        return np.array(self.device.runtime.read(self.address + offset, size)).view(dtype)

    def close(self) -> None:
        """Give the memory back. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            self.device.forget(self)
            self.device.runtime.free(self._allocation)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self, offset: int, size: int) -> None:
        if self._closed:
            raise DmlError("Buffer", "State", "closed", "a buffer that has not been closed")
        if offset < 0 or size < 0 or offset + size > self.size_in_bytes:
            raise DmlError(
                "Buffer",
                "Range",
                f"{size} bytes at offset {offset}",
                f"bytes inside the buffer's {self.size_in_bytes}",
            )
