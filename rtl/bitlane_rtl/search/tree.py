"""A tree of additions that counts the ones of many bits, as data: operands and pipeline stages.

This module builds no hardware. `Unit` makes registers and additions of the tree.
"""

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Adder", "CountTree"]


@dataclass(frozen=True)
class Adder:
    """Adds its own bit to the counts of the places ``below``, which are two, or one at the root."""

    place: int
    level: int
    below: tuple[int, ...]


@dataclass(frozen=True)
class CountTree:
    """A binary tree with a bit at every place: adders take a bit more than two counts, as carry-in.

    Places are numbered from 1, from left to right. The level of a place is how many zeros end its
    number in binary: every second place is a leaf, of level 0. The tree below a place of level n
    reaches ``2**n - 1`` places to either side; that of the root, the last place, to the left only.

    Raises ``ValueError`` if ``bits`` is not a power of two, 4 or more, or if ``per_stage`` is less
    than 1.
    """

    bits: int
    """Places, and bits to count."""

    per_stage: int
    """Levels of additions from one register to the next."""

    def __post_init__(self) -> None:
        if self.bits < 4 or self.bits & (self.bits - 1):
            raise ValueError(f"bits: {self.bits} is no power of two, 4 or more")
        if self.per_stage < 1:
            raise ValueError(f"per_stage: {self.per_stage}; expected 1 or more")

    @property
    def stages(self) -> list[range]:
        """The levels between registers, from those above the leaves to the root's."""
        levels = range(1, self.bits.bit_length())
        return [levels[at : at + self.per_stage] for at in range(0, len(levels), self.per_stage)]

    def places(self, level: int) -> range:
        """All places of ``level``."""
        return range(1 << level, self.bits + 1, 2 << level)

    def above(self, level: int) -> range:
        """All places of a level above ``level``."""
        return range(2 << level, self.bits + 1, 2 << level)

    def chains(self, stage: range, tops: int) -> Iterator[list[Adder]]:
        """The adders of ``stage``: those below its first ``tops`` places of the highest level, ...

        Each comes after those that it needs the counts of.
        """
        reach = 1 << stage[-1]
        highest = self.places(stage[-1])
        for first in range(0, len(highest), tops):
            group = highest[first : first + tops]
            span = range(group[0] - reach, group[-1] + reach)
            yield [
                Adder(place, level, self._below(place, level))
                for level in stage
                for place in self.places(level)
                if place in span
            ]

    def _below(self, place: int, level: int) -> tuple[int, ...]:
        away = 1 << level - 1
        return tuple(each for each in (place - away, place + away) if each <= self.bits)
