"""The counters of coverage in a compiled design."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..netlist import WORD
from ..netlist.covered import CoveredBits

_PLANES, _LANES = 64, 4
"""Bits of a counter, and words that are counted together."""


class Counters:
    """The counters of ``covered``, in the layout of covered.h.

    ``address`` ends the count of the steps so far, and returns where the counters are.
    """

    def __init__(self, address: Callable[[], int], covered: CoveredBits) -> None:
        self._address, self._covered = address, covered
        self._size = -(-len(covered.words) // _LANES) * _LANES

    def take(self) -> tuple[Sequence[tuple[int, int]], Sequence[Sequence[int]]]:
        """Return the counts since the last call.

        First the changes to 1 and to 0 of each bit, then the counts of each statement: how often it
        was reached, and how often each case of a switch was taken.
        """
        size = self._size
        content = (ctypes.c_uint64 * (size * (2 + _PLANES))).from_address(self._address())
        words = np.ctypeslib.as_array(content).reshape(2 + _PLANES, size)
        first, last, planes = words[0], words[1], words[2:]
        totals = np.zeros(size * WORD, np.int64)
        for number in np.flatnonzero(planes.any(axis=1)).tolist():
            totals += _bits(planes[number]) << number
        counts, grown = totals.tolist(), (_bits(last) - _bits(first)).tolist()
        first[:] = last
        planes[:] = 0
        covered = self._covered
        toggles = [(counts[x] + grown[x], counts[x]) if x >= 0 else (0, 0) for x in covered.toggles]
        return toggles, [
            [counts[x] if x >= 0 else 0 for x in found] for found in covered.conditions
        ]


def _bits(words: Any) -> Any:
    """Return all bits of words, the lowest of the first word first."""
    shifts = np.arange(WORD, dtype=np.uint64)
    return (words[:, np.newaxis] >> shifts & np.uint64(1)).astype(np.int64).reshape(-1)
