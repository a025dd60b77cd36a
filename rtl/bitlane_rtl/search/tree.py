"""A tree of additions that counts the ones of many bits, as data: operands and pipeline stages.

This module builds no hardware. `Unit` makes registers and additions of the tree.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from amaranth.utils import exact_log2

__all__ = ["Adder", "CountTree"]


@dataclass(frozen=True)
class Adder:
    """Adds the bit of ``node`` to the counts of the nodes ``below``: two, or one at the root."""

    node: int
    level: int
    below: tuple[int, ...]


@dataclass(frozen=True)
class CountTree:
    """A binary tree with a bit at every node: adders sum two counts, with the bit as carry-in.

    Nodes are numbered from 1, from left to right. The level of a node is the number of zeros at the
    end of its number in binary, so every second node is a leaf, of level 0. For 8 bits::

        level 3                              8
        level 2                4
        level 1        2               6
        level 0    1       3       5       7

    The subtree of a node of level n reaches ``2**n - 1`` nodes to either side; that of the root,
    the last node, to the left only.

    Raises ``ValueError`` if ``bits`` is not a power of two, 4 or more, or if ``per_stage`` is less
    than 1.
    """

    bits: int
    """Nodes, and bits to count."""

    per_stage: int
    """Levels of additions between two registers."""

    def __post_init__(self) -> None:
        if self.bits < 4 or self.bits & (self.bits - 1):
            raise ValueError(f"bits: {self.bits} is not a power of two, 4 or more")
        if self.per_stage < 1:
            raise ValueError(f"per_stage: {self.per_stage}; expected 1 or more")

    @property
    def stages(self) -> list[range]:
        """The levels between two registers, from level 1 to the root's."""
        levels = range(1, exact_log2(self.bits) + 1)
        return [levels[at : at + self.per_stage] for at in range(0, len(levels), self.per_stage)]

    def nodes(self, level: int) -> range:
        """Return the nodes of ``level``."""
        return range(1 << level, self.bits + 1, 2 << level)

    def above(self, level: int) -> range:
        """Return the nodes of all levels above ``level``."""
        return range(2 << level, self.bits + 1, 2 << level)

    def chains(self, stage: range, tops: int) -> Iterator[list[Adder]]:
        """Yield the adders of ``stage`` in groups, each with ``tops`` nodes of its highest level.

        An adder follows the adders whose counts it sums.
        """
        reach = 1 << stage[-1]
        highest = self.nodes(stage[-1])
        for first in range(0, len(highest), tops):
            group = highest[first : first + tops]
            span = range(group[0] - reach, group[-1] + reach)
            yield [
                Adder(node, level, self._below(node, level))
                for level in stage
                for node in self.nodes(level)
                if node in span
            ]

    def _below(self, node: int, level: int) -> tuple[int, ...]:
        away = 1 << level - 1
        return tuple(each for each in (node - away, node + away) if each <= self.bits)
