"""A device as memory and a queue of commands: what the faces for arrays and DirectML stand on.

Knows addresses and views. It never sees a data type, and never computes on data.
"""

from threading import RLock
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import ABI_VERSION, IDENTITY, Op

from .allocator import Allocator, Buffer
from .control import Control
from .errors import DeviceError, LinkError
from .geometry import Geometry
from .link import BytesLike, Link
from .lowering import View, lower
from .ring import Ring

__all__ = ["DEFAULT_TIMEOUT", "Runtime"]

DEFAULT_TIMEOUT: Final = 60.0


class Runtime:
    """The device behind ``link``; takes the link over, and closes it in the end.

    Threads may share it: calls wait for each other. After a fault or a timeout it can be used on.

    Raises ``LinkError`` on connecting if there is no bitlane device of this version.
    """

    timeout: float
    """Seconds in which a command must retire (default 60)."""

    def __init__(self, link: Link, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.link = link
        self.timeout = timeout
        self._lock = RLock()
        self._control = Control(link)
        self._identify()
        self.geometry = Geometry.from_registers(
            *(
                self._control.read(name)
                for name in ("CAPABILITIES", "GEOMETRY", "MEMORY_BASE", "MEMORY_LAST")
            )
        )
        self.allocator = Allocator(self.geometry.memory_base, self.geometry.memory_bytes)
        self._ring = Ring(link, self._control, self.geometry.slots)
        # Whoever used the device before may have left it busy, faulty or with counts of its own.
        self._ring.clear()

    def _identify(self) -> None:
        for name, expected in (("IDENTITY", IDENTITY), ("VERSION", ABI_VERSION)):
            got = self._control.read(name)
            if got != expected:
                raise LinkError(
                    f"{self.link.description}: register {name} is {got:#x}; expected"
                    f" {expected:#x}, a bitlane device of contract version {ABI_VERSION}"
                )

    def allocate(self, size: int, alignment: int = 64) -> Buffer:
        """``size`` bytes of the device's memory. Raises ``OutOfDeviceMemory``."""
        with self._lock:
            return self.allocator.allocate(size, alignment)

    def free(self, buffer: Buffer) -> None:
        """Give memory back. Raises ``DeviceError`` if it is not allocated."""
        with self._lock:
            self.allocator.free(buffer)

    def write(self, address: int, data: BytesLike) -> None:
        """Copy all bytes of ``data`` to the device's memory. Raises ``LinkError``."""
        size = data.nbytes if isinstance(data, (np.ndarray, memoryview)) else len(data)
        self._expect_inside(address, size)
        if size:
            with self._lock:
                self.link.write(address, data)

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """A copy of ``size`` bytes of the device's memory. Raises ``LinkError``."""
        self._expect_inside(address, size)
        if size == 0:
            return np.empty(0, np.uint8)
        with self._lock:
            data = np.frombuffer(self.link.read(address, size), np.uint8)
        if data.size != size:
            raise LinkError(
                f"{self.link.description}: {data.size} bytes came from {address:#x};"
                f" expected {size}"
            )
        return data

    def _expect_inside(self, address: int, size: int) -> None:
        base, last = self.geometry.memory_base, self.geometry.memory_last
        if address < base or address + size - 1 > last:
            raise ValueError(
                f"address: {size} bytes at {address:#x} are outside the device's memory,"
                f" {base:#x} to {last:#x}"
            )

    def execute(
        self,
        op: Op,
        shape: tuple[int, ...],
        a: View,
        b: View | None,
        y: View,
        *,
        saturate: bool,
        arithmetic: bool = False,
    ) -> None:
        """Set every element of ``y`` to ``op`` of the same elements of ``a`` and ``b``.

        Returns when the device has finished. Views must be alike or apart: ``lowering.lower``
        states the rules.

        Raises
        ------
        LayoutError, UnsupportedError
            The device has not been touched.
        DeviceFault
            The circuit stopped; ``y`` may be written in part.
        DeviceTimeout
            No command retired within ``timeout`` seconds.
        """
        commands = lower(
            op,
            shape,
            a,
            b,
            y,
            geometry=self.geometry,
            saturate=saturate,
            arithmetic=arithmetic,
        )
        with self._lock:
            try:
                self._ring.run(commands, self.timeout)
            except DeviceError:
                # A board may have been given another bitstream meanwhile.
                self._identify()
                raise

    def read_register(self, name: str) -> int:
        """A register by its name in ``abi.REGISTERS``. Raises ``KeyError``."""
        with self._lock:
            return self._control.read(name)

    def write_register(self, name: str, value: int) -> None:
        """Set a register by its name. Raises ``KeyError``."""
        with self._lock:
            self._control.write(name, value)

    def registers(self) -> dict[str, int]:
        """All registers that can be read, by name."""
        with self._lock:
            return self._control.registers()

    def counters(self) -> dict[str, int]:
        """The performance counters by name, since ``clear_counters``; 0 if there are none."""
        with self._lock:
            return self._control.counters()

    def clear_counters(self) -> None:
        """Set all counters to 0."""
        self.write_register("COUNTERS_CLEAR", 1)

    def close(self) -> None:
        """Close the link. May be called again."""
        with self._lock:
            self.link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
