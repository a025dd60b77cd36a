"""Blocks store the rows of an index, in order; a block never changes.

Rows that were removed leave gaps in a block: slots that no row has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..driver import Storage

Rows = NDArray[np.uint8]

Numbers = NDArray[np.int64]
"""Numbers of rows or slots, ascending."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows in slots of equal size: of the device's memory, or the rows of an array on the host."""

    place: Storage | Rows
    capacity: int
    """Slots."""
    used: int
    """The first slots, which were written; later ones may be written at any time."""
    kept: Numbers | None = None
    """The slots that have rows, in order; None: all that are used."""

    @classmethod
    def of_host(cls, rows: Rows) -> Self:
        return cls(rows, len(rows), len(rows))

    @property
    def on_device(self) -> bool:
        return isinstance(self.place, Storage)

    @property
    def in_file(self) -> bool:
        """Whether its rows are in a memory-mapped file, where they stay."""
        return isinstance(self.place, np.memmap)

    @property
    def has_gaps(self) -> bool:
        """Whether slots have no row."""
        return self.count < self.capacity

    @property
    def address(self) -> int:
        """Address of the first slot on the device."""
        assert isinstance(self.place, Storage)
        return self.place.address

    @property
    def content(self) -> Rows:
        """The slots on the host."""
        assert not isinstance(self.place, Storage)
        return self.place

    @property
    def count(self) -> int:
        """Rows."""
        return self.used if self.kept is None else len(self.kept)

    def slots(self, rows: Numbers | None = None) -> Numbers:
        """Return the slots of ``rows``, which count from 0 in this block; None: of all."""
        if rows is None:
            return np.arange(self.used) if self.kept is None else self.kept
        return rows if self.kept is None else self.kept[rows]

    def only(self, rows: Numbers) -> Self:
        """Return the same block without all rows but ``rows``."""
        return self if len(rows) == self.count else replace(self, kept=self.slots(rows))

    def extended(self, rows: int) -> Self:
        """Return the same block with ``rows`` more, in the slots after those that are used."""
        used = self.used + rows
        kept = self.kept
        if kept is not None:
            kept = np.concatenate([kept, np.arange(self.used, used)])
        return replace(self, used=used, kept=kept)


Blocks = tuple[Block, ...]


def count_rows(blocks: Sequence[Block]) -> int:
    """Return the number of rows in ``blocks``."""
    return sum(block.count for block in blocks)


def split_rows(blocks: Sequence[Block], rows: Numbers) -> Iterator[tuple[Block, int, Numbers]]:
    """Yield each block that has some of ``rows``, its first row, and those, counted from it."""
    first = 0
    for block in blocks:
        low, high = np.searchsorted(rows, [first, first + block.count])
        if low < high:
            yield block, first, rows[low:high] - first
        first += block.count


def only_rows(blocks: Sequence[Block], rows: Numbers) -> Blocks:
    """Return ``blocks`` without all rows but ``rows``. Those without rows are left out."""
    return tuple(block.only(some) for block, _, some in split_rows(blocks, rows))
