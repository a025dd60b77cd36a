"""Which bytes of the device's memory are taken. Bookkeeping only; it never touches the device."""

from bisect import bisect_left
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ..errors import DeviceError, OutOfDeviceMemory

ALIGNMENT: Final = 64
"""Bytes of the widest beat, of which every allocation starts at a multiple."""


class Allocation(NamedTuple):
    """``size`` bytes of the device's memory from ``address`` on."""

    address: int
    size: int


class Allocator:
    """Best-fit allocator of ``size`` bytes of memory from ``base`` on.

    An allocation takes all bytes to the next multiple of ``ALIGNMENT``, from the smallest hole
    that is large enough, the lowest of equals. Freed neighbours join. Takes time in proportion to
    the number of holes.
    """

    def __init__(self, base: int, size: int) -> None:
        if size < 1:
            raise ValueError(f"size: {size}; expected at least 1 byte")
        # Sorted by address, never adjacent: (first, one past the last). All start aligned.
        whole = (round_up(base), base + size)
        self._holes: list[tuple[int, int]] = [whole] if whole[0] < whole[1] else []
        # Allocation -> one past the last byte that it takes.
        self._taken: dict[Allocation, int] = {}

    @property
    def free_bytes(self) -> int:
        """Free bytes in all holes together."""
        return sum(end - start for start, end in self._holes)

    @property
    def taken(self) -> Mapping[Allocation, int]:
        """A live view of all allocations, each with the address behind the bytes that it takes."""
        return MappingProxyType(self._taken)

    @property
    def pieces(self) -> int:
        """Number of allocations that are not freed."""
        return len(self._taken)

    def largest(self) -> int:
        """Return the most bytes that one allocation could take."""
        return max((end - start for start, end in self._holes), default=0)

    def allocate(self, size: int) -> Allocation:
        """Allocate ``size`` bytes. Size 0 takes as much as size 1.

        Raises ``OutOfDeviceMemory`` if no hole is large enough, and ``ValueError`` for a negative
        size.
        """
        if size < 0:
            raise ValueError(f"size: {size}; expected 0 or more bytes")
        fits = [
            (end - start, index)
            for index, (start, end) in enumerate(self._holes)
            if end - start >= max(size, 1)
        ]
        if not fits:
            raise OutOfDeviceMemory(
                f"device memory: {size} bytes do not fit; the largest hole has {self.largest()} of"
                f" {self.free_bytes} free bytes"
            )
        index = min(fits)[1]
        start, hole_end = self._holes[index]
        end = min(round_up(start + max(size, 1)), hole_end)
        rest = [(end, hole_end)] if end < hole_end else []
        piece = Allocation(start, size)
        # One behind the other, with no call in between in which Ctrl-C could come.
        self._taken[piece] = end
        self._holes[index : index + 1] = rest
        return piece

    def free(self, piece: Allocation) -> None:
        """Free an allocation. Raises ``DeviceError`` unless it is allocated."""
        if piece not in self._taken:
            raise DeviceError(
                f"memory: {piece.size} bytes at {piece.address:#x} are not allocated;"
                " expected a piece of this device's memory that has not been freed"
            )
        start, end = piece.address, self._taken[piece]
        first = last = bisect_left(self._holes, (start, end))
        if last < len(self._holes) and self._holes[last][0] == end:
            end = self._holes[last][1]
            last += 1
        if first and self._holes[first - 1][1] == start:
            first -= 1
            start = self._holes[first][0]
        # As in `allocate`: no call in between.
        whole = [(start, end)]
        del self._taken[piece]
        self._holes[first:last] = whole


def round_up(address: int) -> int:
    """Return the next multiple of ``ALIGNMENT``, or ``address`` itself if it is one."""
    return -(-address // ALIGNMENT) * ALIGNMENT
