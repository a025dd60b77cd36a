"""A device as memory and a queue of commands, for the layers of arrays and of DirectML.

Knows addresses and commands. It never sees a data type, and never computes on data.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from numbers import Real
from threading import RLock
from typing import Any, Final
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import ABI_VERSION, CONTROL_BASE, IDENTITY

from ..closeable import Closeable
from ..errors import DeviceError, LinkError, OutOfDeviceMemory, SettingError
from ..links import LONGEST_SECONDS, BytesLike, Link
from ..terminal import timed
from .allocator import Allocation, Allocator
from .commands import Command
from .control import Control
from .fork import ForeignProcessLock, invalidate_after_fork
from .geometry import Geometry
from .queue import CommandQueue, Read, Words, Write

DEFAULT_TIMEOUT: Final = 60.0


def expected_timeout(seconds: float) -> float:
    """Return ``seconds`` if it is a valid timeout. Raises ``SettingError``."""
    if not isinstance(seconds, Real) or not 0 < seconds <= LONGEST_SECONDS:
        raise SettingError(
            f"timeout: {seconds!r}; expected seconds, 0 < timeout <= {LONGEST_SECONDS}"
        )
    return float(seconds)


class Driver(Closeable):
    """The device behind ``link``; takes the link over, and closes it in the end.

    Threads may share it: calls wait for each other. After a fault or a timeout it can be used on.
    In a process that is forked later all calls but ``close`` raise ``LinkError``.

    Raises ``LinkError`` on connecting unless a bitlane device of this version answers.
    """

    def __init__(self, link: Link, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.link = link
        self._timeout = DEFAULT_TIMEOUT
        self.timeout = timeout
        self.lock: AbstractContextManager[object] = RLock()
        """Held during a call: other threads wait for it."""
        invalidate_after_fork(self)
        self._control = Control(link)
        self.geometry, self._queue = self._connect()
        self._allocator = Allocator(self.geometry.memory_base, self.geometry.memory_bytes)
        self._leases: set[_Lease] = set()
        # Leases whose storage is dead or closed, and allocations that nothing refers to any more,
        # until they are freed.
        self._ended: deque[_Lease] = deque()
        self._discarded: deque[list[Allocation]] = deque()
        self._closed = False

    def _connect(self) -> tuple[Geometry, CommandQueue]:
        """Identify the device and reset its queue. Raises ``LinkError``."""
        self._identify()
        geometry = self._control.geometry()
        queue = CommandQueue(self.link, self._control, geometry.slots)
        # The program before may have left the device busy, faulty or with other counts.
        queue.clear()
        return geometry, queue

    @property
    def closed(self) -> bool:
        """Whether the link was closed, also by an error: nothing else may be called after that."""
        return self._closed or self.link.closed

    @property
    def timeout(self) -> float:
        """Seconds in which a command must retire (default 60). Raises ``SettingError``."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._timeout = expected_timeout(seconds)

    def _identify(self) -> None:
        for name, expected in (("IDENTITY", IDENTITY), ("VERSION", ABI_VERSION)):
            got = self._control.read(name)
            if got != expected:
                raise LinkError(
                    f"{self.link.description}: register {name} is {got:#x}; expected"
                    f" {expected:#x}, a bitlane device of contract version {ABI_VERSION}"
                )

    @property
    def allocator(self) -> Allocator:
        """The memory's bookkeeping, up to date. Not for several threads at once."""
        self.collect()
        return self._allocator

    def collect(self) -> None:
        """Give back all memory that was discarded. Not for several threads at once."""
        # Ctrl-C at any place leaves the memory in a list, perhaps in two, or free.
        while self._ended:
            lease = self._ended[0]
            self._discarded.append(lease.held)
            self._leases.discard(lease)
            self._ended.popleft()
        while self._discarded:
            held = self._discarded[0]
            while held:
                if held[0] in self._allocator.taken:
                    self._give_back(held[0])
                held.pop(0)
            self._discarded.popleft()

    def allocate(self, size: int) -> Allocation:
        """Allocate ``size`` bytes of the device's memory. Raises ``OutOfDeviceMemory``."""
        taken: list[Allocation] = []
        try:
            with self.lock:
                try:
                    taken.append(self.allocator.allocate(size))
                except OutOfDeviceMemory:
                    # Reference cycles still hold memory that they no longer need.
                    gc.collect()
                    taken.append(self.allocator.allocate(size))
        except BaseException:
            # Ctrl-C on the way out of the lock.
            self.discard(taken)
            raise
        return taken[0]

    def discard(self, held: list[Allocation]) -> None:
        """Give memory back from anywhere, also from within any other call: without the lock.

        ``held`` is emptied when the memory is free, so that a list may be discarded again.
        """
        self._discarded.append(held)

    def lease(self, storage: "Storage") -> "_Lease":
        """Return the lease of ``storage``, whose memory is discarded when the storage is dead."""
        # The deque's own method: no Ctrl-C can come in it, wherever the storage dies.
        lease = _Lease(storage, self._ended.append)
        self._leases.add(lease)
        return lease

    def end(self, lease: "_Lease") -> None:
        """Discard the memory of ``lease``. May be called again, and from within any other call."""
        self._ended.append(lease)

    def free(self, buffer: Allocation) -> None:
        """Give memory back. Raises ``DeviceError`` if it is not allocated."""
        with self.lock:
            self._give_back(buffer)

    def _give_back(self, allocation: Allocation) -> None:
        self._allocator.free(allocation)
        self.link.forget(allocation.address, allocation.size)

    def write(self, address: int, data: BytesLike) -> None:
        """Copy all bytes of ``data`` to the device's memory. Raises ``LinkError``."""
        size = _size(data)
        self._expect_inside(address, size)
        if size:
            with timed(self.lock, "sending"):
                self.link.write(address, data)

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return a copy of ``size`` bytes of the device's memory. Raises ``LinkError``."""
        self._expect_inside(address, size)
        if size == 0:
            return np.empty(0, np.uint8)
        with timed(self.lock, "receiving"):
            data = self.link.read(address, size)
        return self._whole(data, address, size)

    def exchange(self, writes: Sequence[Write], reads: Sequence[Read]) -> list[NDArray[np.uint8]]:
        """Do many writes and reads, both directions at the same time where the link can.

        They may concern the control window too. Ranges must not overlap, nor be empty; for the
        order see ``Link.exchange``. Returns the data of the reads. Raises ``LinkError``.
        """
        for address, data in writes:
            if address < CONTROL_BASE:
                self._expect_inside(address, _size(data))
        for address, size in reads:
            if address < CONTROL_BASE:
                self._expect_inside(address, size)
        with timed(self.lock, "exchanging"):
            results = self.link.exchange(writes, reads)
        return [
            self._whole(data, address, size)
            for data, (address, size) in zip(results, reads, strict=True)
        ]

    def _expect_inside(self, address: int, size: int) -> None:
        base, last = self.geometry.memory_base, self.geometry.memory_last
        if address < base or address + size - 1 > last:
            raise ValueError(
                f"address: {size} bytes at {address:#x} are outside the device's memory,"
                f" {base:#x} to {last:#x}"
            )

    def _whole(self, data: NDArray[np.uint8], address: int, size: int) -> NDArray[np.uint8]:
        data = np.frombuffer(data, np.uint8)
        if data.size != size:
            raise LinkError(
                f"{self.link.description}: {data.size} bytes came from {address:#x};"
                f" expected {size}"
            )
        return data

    def run(
        self,
        commands: Iterable[Command | Words],
        *,
        before: Sequence[Write] = (),
        meanwhile: Sequence[Write] = (),
        reads: Sequence[Read] = (),
    ) -> list[NDArray[np.uint8]]:
        """Execute commands in order; when the device has finished, return the data of ``reads``.

        Words of records are submitted as they are, unchecked. ``before`` is written first;
        ``meanwhile`` is written and ``reads`` are read while the device works. They concern the
        device's memory, and overlap neither each other nor the commands' operands and results.

        Raises
        ------
        DeviceFault
            The circuit stopped; the results of the commands may be written in part.
        DeviceTimeout
            No command retired within ``timeout`` seconds.
        """
        with timed(self.lock, "computing"):
            try:
                return self._queue.run(
                    commands, self._timeout, before=before, meanwhile=meanwhile, reads=reads
                )
            except DeviceError:
                # A board may have got another bitstream meanwhile.
                self._identify()
                raise

    def run_labelled(self, groups: Iterable[tuple[str, Iterable[Command]]]) -> None:
        """Execute the commands of all ``groups`` in order, as `run` does.

        The label of a group matters only to a `RecordingDriver`. Raises as `run` does.
        """
        self.run(chain.from_iterable(commands for _, commands in groups))

    def clear(self) -> None:
        """Reset the queue: FAULT, DOORBELL and RETIRED are 0 then.

        Raises ``DeviceTimeout`` if the device's bus does not drain.
        """
        with self.lock:
            self._queue.clear()

    def read_register(self, name: str) -> int:
        """Read a register by its name in ``abi.REGISTERS``. Raises ``KeyError``."""
        with self.lock:
            return self._control.read(name)

    def write_register(self, name: str, value: int) -> None:
        """Set a register by its name. Raises ``KeyError``."""
        with self.lock:
            self._control.write(name, value)

    def registers(self) -> dict[str, int]:
        """Return all registers that can be read, by name."""
        with self.lock:
            return self._control.registers()

    def counters(self) -> dict[str, int]:
        """Return the performance counters by name, since ``clear_counters``; 0 without counters."""
        with self.lock:
            return self._control.counters()

    def clear_counters(self) -> None:
        """Set all counters to 0."""
        self.write_register("COUNTERS_CLEAR", 1)

    def close(self) -> None:
        """Close the link. May be called again, and in a process that was forked meanwhile."""
        with nullcontext() if isinstance(self.lock, ForeignProcessLock) else self.lock:
            self._closed = True
            self.link.close()


def _size(data: BytesLike) -> int:
    return data.nbytes if isinstance(data, (np.ndarray, memoryview)) else len(data)


class _Lease(ref["Storage"]):
    """The allocation of a storage: ``held``, a list that is empty before and after it."""

    __slots__ = ("held",)

    held: list[Allocation]

    def __init__(self, storage: "Storage", ended: Callable[["_Lease"], None]) -> None:
        self.held = []


class Storage(Closeable):
    """``size`` bytes of the device's memory from ``address`` on, a multiple of 64.

    ``close`` gives them back, and so does Python once nothing refers to this object: code that
    reads or writes the bytes later must hold it. Raises ``OutOfDeviceMemory``.
    """

    __slots__ = ("__weakref__", "_lease", "address", "closed", "driver", "size", "users")

    def __init__(self, driver: Driver, size: int) -> None:
        self.closed = False
        """Whether the bytes have been given back."""
        self.users: Any = None
        """Account of the calls and values that use the bytes, if the arrays keep one."""
        # Before allocating, so that Ctrl-C in between leaks nothing.
        self._lease = driver.lease(self)
        self._lease.held.append(driver.allocate(size))
        self.driver = driver
        self.address = self._lease.held[0].address
        self.size = size

    def close(self) -> None:
        """Give the bytes back. May be called again."""
        if not self.closed:
            # In this order: a storage that looks open must not be anybody else's.
            self.closed = True
            self.driver.end(self._lease)

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"at {self.address:#x}"
        return f"<bitlane Storage: {self.size} bytes, {where}>"
