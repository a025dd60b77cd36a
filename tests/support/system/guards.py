"""Guard bytes on both sides of every allocation of a simulated device."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bitlane import Device
from bitlane.driver.allocator import ALIGNMENT, Allocation, Allocator

_GUARD = (np.arange(ALIGNMENT, dtype=np.uint8) * 37 + 0x5B).astype(np.uint8)


class GuardedAllocator(Allocator):
    """Allocates with guard bytes before and behind, and notes which have been written over.

    The bytes behind begin at the first one that the caller did not ask for.
    """

    def __init__(self, base: int, memory: NDArray[np.uint8]) -> None:
        super().__init__(base, memory.size)
        self._base = base
        self._memory = memory
        self._whole: dict[Allocation, Allocation] = {}
        self.damaged: list[str] = []

    def largest(self) -> int:
        return max(0, super().largest() - 2 * ALIGNMENT)

    @property
    def taken(self) -> Mapping[Allocation, int]:
        return {piece: piece.address + piece.size for piece in self._whole}

    @property
    def free_bytes(self) -> int:
        return max(0, super().free_bytes - 2 * ALIGNMENT)

    def allocate(self, size: int) -> Allocation:
        whole = super().allocate(max(size, 1) + 2 * ALIGNMENT)
        piece = Allocation(whole.address + ALIGNMENT, size)
        self._whole[piece] = whole
        for guard in self._guards(piece):
            guard[:] = _GUARD
        return piece

    def free(self, piece: Allocation) -> None:
        if piece not in self._whole:
            super().free(piece)
        for side, guard in zip(("before", "behind"), self._guards(piece), strict=True):
            wrong = np.nonzero(guard != _GUARD)[0]
            if wrong.size:
                self.damaged.append(f"{piece}: bytes {wrong.tolist()} of the guard {side} it")
        super().free(self._whole.pop(piece))

    def _guards(self, piece: Allocation) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        start = piece.address - self._base
        end = start + max(piece.size, 1)
        return self._memory[start - ALIGNMENT : start], self._memory[end : end + ALIGNMENT]


def guard(device: Device) -> GuardedAllocator:
    """Guard all later allocations of ``device``, a simulated one."""
    driver = device.driver
    memory = driver.link.memory_view
    assert memory is not None
    guarded = GuardedAllocator(driver.geometry.memory_base, memory)
    assert not driver.allocator.pieces
    driver._allocator = guarded
    return guarded
