"""Which bytes of the device's memory are taken. Bookkeeping only; it never touches the device."""

from bisect import bisect_left
from dataclasses import dataclass

from ..errors import DeviceError

__all__ = ["Allocation", "Allocator", "OutOfDeviceMemory"]


class OutOfDeviceMemory(DeviceError, MemoryError):
    """No hole of the device's memory is large enough."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """A piece of the device's memory: ``size`` bytes from ``address`` on."""

    address: int
    size: int


class Allocator:
    """Hands out pieces of ``size`` bytes of memory from ``base`` on.

    Best fit: the smallest hole that is large enough, the lowest of equals. Freed neighbours join.
    Takes time in proportion to the number of holes.
    """

    def __init__(self, base: int, size: int) -> None:
        if size < 1:
            raise ValueError(f"size: {size}; expected at least 1 byte")
        self._base = base
        self._size = size
        # Sorted by address, never adjacent: (first, one past the last).
        self._holes: list[tuple[int, int]] = [(base, base + size)]
        # Address -> one past the last byte.
        self._taken: dict[int, int] = {}

    @property
    def free_bytes(self) -> int:
        """Bytes that are not taken, in all holes together."""
        return sum(end - start for start, end in self._holes)

    @property
    def pieces(self) -> int:
        """Pieces handed out and not freed."""
        return len(self._taken)

    def largest(self, alignment: int = 64) -> int:
        """The most bytes that ``allocate`` would give at once."""
        return max((end - _up(start, alignment) for start, end in self._holes), default=0)

    def allocate(self, size: int, alignment: int = 64) -> Allocation:
        """A piece of ``size`` bytes at a multiple of ``alignment``. Size 0 takes a byte.

        Raises
        ------
        OutOfDeviceMemory
            No hole is large enough.
        ValueError
            ``size`` is negative, or ``alignment`` no power of two.
        """
        if size < 0:
            raise ValueError(f"size: {size}; expected 0 or more bytes")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"alignment: {alignment}; expected a power of two")
        needed = max(size, 1)
        fits = [
            (end - start, index)
            for index, (start, end) in enumerate(self._holes)
            if end - _up(start, alignment) >= needed
        ]
        if not fits:
            raise OutOfDeviceMemory(
                f"device memory: {size} bytes at a multiple of {alignment} do not fit; the largest"
                f" hole has {max(0, self.largest(alignment))} of {self.free_bytes} free bytes"
            )
        index = min(fits)[1]
        start, end = self._holes[index]
        address = _up(start, alignment)
        rest = [(start, address), (address + needed, end)]
        self._holes[index : index + 1] = [hole for hole in rest if hole[0] < hole[1]]
        self._taken[address] = address + needed
        return Allocation(address, size)

    def free(self, buffer: Allocation) -> None:
        """Give a piece back. Raises ``DeviceError`` for one that is not taken (any more)."""
        end = self._taken.get(buffer.address)
        if end is None or end - buffer.address != max(buffer.size, 1):
            raise DeviceError(
                f"buffer: {buffer.size} bytes at {buffer.address:#x} are not allocated;"
                " expected a buffer of this device that has not been freed"
            )
        del self._taken[buffer.address]
        start = buffer.address
        index = bisect_left(self._holes, (start, end))
        if index < len(self._holes) and self._holes[index][0] == end:
            end = self._holes.pop(index)[1]
        if index and self._holes[index - 1][1] == start:
            index -= 1
            start = self._holes.pop(index)[0]
        self._holes.insert(index, (start, end))


def _up(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment
