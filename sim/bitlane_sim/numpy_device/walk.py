"""The addresses of a stream: a view of the memory, or where the stream first leaves it.

Addresses are modulo 2**32, but no memory here reaches beyond 2**31: a stride or jump is less than
2**31 either way, so whatever would wrap leaves the memory first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

ADDRESSES = 1 << 32
"""Addresses are modulo this."""

LARGEST_MEMORY = 1 << 31
"""The address behind the last byte of the largest memory."""


@dataclass(frozen=True, slots=True)
class AddressWalk:
    """A stream that starts at byte ``base``, with ``counts`` iterations and ``steps`` a loop.

    The outermost loop is first and the run last. Steps are in bytes. In each iteration of the
    innermost loop the stream touches ``size`` consecutive bytes.
    """

    base: int
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    size: int

    @classmethod
    def of(
        cls, base: int, run: tuple[int, int], loops: Sequence[tuple[int, int]], size: int
    ) -> Self:
        """Return the walk of a record: ``run`` is count and step, ``loops`` are COUNT_k and JUMP_k.

        JUMP_k begins at the last address that the loops inside loop k have generated.
        """
        counts, steps = [run[0]], [run[1]]
        covered = run[1] * (run[0] - 1)
        for count, jump in loops:
            steps.append(jump + covered)
            counts.append(count)
            covered += steps[-1] * (count - 1)
        return cls(base, tuple(counts[::-1]), tuple(steps[::-1]), size)

    def bounds(self, loop: int = 0) -> tuple[int, int]:
        """Return the first byte and the one behind the last, relative to where ``loop`` starts."""
        low, high = 0, self.size
        for count, step in zip(self.counts[loop:], self.steps[loop:], strict=True):
            end = step * (count - 1)
            low, high = low + min(0, end), high + max(0, end)
        return low, high

    def leaves(self, first: int, end: int) -> tuple[int, int] | None:
        """Return the number of the first iteration outside ``first`` to ``end``, and its address.

        Iterations of the innermost loop are counted. Returns None if there is none.
        """
        low, high = self.bounds()
        if first <= self.base + low and self.base + high <= end:
            return None
        number, address = 0, self.base
        for loop, (count, step) in enumerate(zip(self.counts, self.steps, strict=True), 1):
            low, high = self.bounds(loop)
            # Iterations that stay inside with all loops within them.
            inside = count
            if address + low < first or address + high > end:
                inside = 0
            elif step > 0:
                inside = (end - high - address) // step + 1
            elif step < 0:
                inside = (address + low - first) // -step + 1
            number = number * count + inside
            address += inside * step
        return number, address

    def with_run(self, count: int, step: int) -> "AddressWalk":
        """Return the walk whose runs have ``count`` elements, ``step`` bytes apart."""
        return replace(self, counts=(*self.counts[:-1], count), steps=(*self.steps[:-1], step))

    def view(self, memory: NDArray[np.uint8], first: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the elements in ``memory``, which begins at address ``first``: an axis a loop."""
        return np.ndarray(self.counts, dtype, memory, self.base - first, self.steps)
