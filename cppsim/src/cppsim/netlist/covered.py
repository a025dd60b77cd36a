"""The bits of a design whose values coverage counts, and the counter of each point.

Amaranth's emitter has a net for the condition of each statement, and for each case of a switch: 1
where it is taken. Statements that become one cell in the netlist are still apart there, with their
lines in source files.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from .design import WORD, Bits


class Measured(Enum):
    """The kinds of points that coverage counts; a value is a part of the key of a library."""

    NOTHING = ""
    BRANCHES = "statements and branches"
    ALL = "statements, branches and toggles"


@dataclass(frozen=True, slots=True)
class CountedWord:
    """Up to 64 bits that are counted together.

    Attributes
    ----------
    bits
        The bits.
    edge
        The bit that is 1 at an edge of the domain at which they are counted; None for every edge.
    toggles
        Changes of the bits are counted; else edges at which they are 1.
    """

    bits: Bits
    edge: int | None
    toggles: bool


@dataclass(slots=True)
class CoveredBits:
    """The counted words of a design, and which counter each point has.

    A counter is 64 times the number of its word, plus the index of its bit; -1 for a constant 0.

    Attributes
    ----------
    toggles
        The counter of each bit of the signals, in the order of `named_signals`; none if toggles are
        not counted.
    conditions
        The counters of each statement, in the order of `statements_of`: where it is reached, and
        where each case of a switch is taken.
    """

    words: list[CountedWord] = field(default_factory=list)
    toggles: list[int] = field(default_factory=list)
    conditions: list[list[int]] = field(default_factory=list)


def covered_bits(
    signals: Iterable[Bits], conditions: Iterable[tuple[int | None, Bits]]
) -> CoveredBits:
    """Return counters for ``signals``, and for ``conditions``, each with the edge of its domain.

    Equal bits share a counter.
    """
    counters = _Counters()
    toggles = [counters.of(bit, None, toggles=True) for bits in signals for bit in bits]
    found = [[counters.of(bit, edge, toggles=False) for bit in bits] for edge, bits in conditions]
    words = [CountedWord(tuple(bits), *kind) for kind, bits in counters.words]
    return CoveredBits(words, toggles, found)


class _Counters:
    """Counters in words, each of bits of one kind: the edge, and whether toggles are counted."""

    def __init__(self) -> None:
        self.words: list[tuple[tuple[int | None, bool], list[int]]] = []
        self._open: dict[tuple[int | None, bool], int] = {}
        self._known: dict[tuple[int, int | None, bool], int] = {}

    def of(self, bit: int, edge: int | None, *, toggles: bool) -> int:
        """Return the counter of ``bit``, which is -1 if it always counts 0."""
        if bit == 0 or edge == 0 or (toggles and bit == 1):
            return -1
        key, kind = (bit, edge, toggles), (edge, toggles)
        if key not in self._known:
            number = self._open.get(kind)
            if number is None or len(self.words[number][1]) == WORD:
                self._open[kind] = number = len(self.words)
                self.words.append((kind, []))
            bits = self.words[number][1]
            self._known[key] = WORD * number + len(bits)
            bits.append(bit)
        return self._known[key]
