"""Offsets of selected blocks of memory: multiples of a unit, as numbers or as a mask of these.

They share no memory with the indices that they are made from, which a caller may change.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_LONG_RUN = 16
"""Selected numbers in sequence, on average, from which NumPy's masks are faster than indices."""


@dataclass(frozen=True)
class NumberedOffsets:
    """``first`` bytes plus ``unit`` bytes times each of ``numbers``, whose least is 0."""

    first: int
    numbers: NDArray[np.int64]
    unit: int
    last: int
    """The greatest of ``numbers``."""

    @classmethod
    def of(cls, numbers: NDArray[np.int64], unit: int) -> "NumberedOffsets":
        """Return the offsets of ``numbers``, one or more, times ``unit``."""
        low, high = int(numbers.min()), int(numbers.max())
        return cls(low * unit, numbers - low, unit, high - low)

    @property
    def count(self) -> int:
        return len(self.numbers)

    @property
    def rows(self) -> NDArray[np.int64]:
        """An index of an array with a row for each number from 0 to ``last``."""
        return self.numbers


@dataclass(frozen=True)
class MaskedOffsets:
    """``first`` bytes plus ``unit`` bytes times each index at which ``mask`` is true.

    ``mask`` begins and ends with True.
    """

    first: int
    mask: NDArray[np.bool_]
    unit: int
    count: int

    @classmethod
    def of(cls, mask: NDArray[np.bool_], unit: int, count: int) -> "MaskedOffsets":
        """Return the offsets of ``mask``, of which ``count``, one or more, are true."""
        low = int(mask.argmax())
        end = len(mask) - int(mask[::-1].argmax())
        return cls(low * unit, mask[low:end].copy(), unit, count)

    @property
    def last(self) -> int:
        return len(self.mask) - 1

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.mask)

    @property
    def rows(self) -> NDArray[np.int64] | NDArray[np.bool_]:
        """An index of an array with a row for each number from 0 to ``last``."""
        edges = np.count_nonzero(self.mask[1:] != self.mask[:-1])
        return self.mask if edges * _LONG_RUN < 2 * self.count else self.numbers


BlockOffsets: TypeAlias = NumberedOffsets | MaskedOffsets


def in_bytes(offsets: BlockOffsets, base: int = 0) -> NDArray[np.int64]:
    """Return ``base`` plus each offset."""
    return offsets.numbers * offsets.unit + (base + offsets.first)
