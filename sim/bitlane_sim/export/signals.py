"""How the bits of a design are written in Verilog: names, ranges, and what stands in place of one.

A cell with a single reader need have no name: its expression stands where it is read.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from cppsim.netlist.design import Bits, CellKind, MemoryWrite, PlainCell, PlainDesign

from .expressions import constant, joined
from .names import Names

__all__ = ["Signals", "declared", "stores"]

_Piece = tuple[str, Bits]
"""A name, and the bits that it stands for."""

_INLINE = 60
"""Longest expression that stands within another one, in characters."""


def declared(name: str, width: int) -> str:
    """``name`` with the range of its bits, as in a declaration."""
    return name if width == 1 else f"[{width - 1}:0] {name}"


def stores(write: MemoryWrite) -> Iterator[tuple[int, slice]]:
    """The enables of ``write``, and the places next to each other of which each is."""
    for enable, group in groupby(range(len(write.enable)), lambda place: write.enable[place]):
        places = list(group)
        yield enable, slice(places[0], places[-1] + 1)


class Signals:
    """Names and texts for the bits of ``design``; ``taken`` are names that must not be given."""

    def __init__(self, design: PlainDesign, taken: Sequence[str]) -> None:
        self._unused = design.unused
        self._names = Names(design.names, taken)
        self._places: dict[int, tuple[str, int, int]] = {}
        """Signal, place in it, and its width, by bit."""
        self._waiting: dict[int, tuple[Bits, str]] = {}
        """Expressions to stand where they are read, by their lowest bit."""
        self._readers: dict[int, tuple[int, int]] = {}
        """The last reader of a bit, and the bit's place in what it reads."""
        self.uses: Counter[int] = Counter()
        """How often each bit is read."""
        for number, bits in enumerate(self._reads(design)):
            self.uses.update(bits)
            self._readers |= {bit: (number, place) for place, bit in enumerate(bits)}

    def define(self, name: str, bits: Bits) -> None:
        """From here on, ``bits`` are those of the signal ``name``."""
        self._places |= {bit: (name, place, len(bits)) for place, bit in enumerate(bits)}

    def unique(self, wish: str) -> str:
        """A name like ``wish`` that nothing else has."""
        return self._names.unique(wish)

    def cuts(self, bits: Bits) -> list[slice]:
        """Where ``name`` cuts ``bits``: nowhere if a designer named them, else between names."""
        if self._names.is_known(bits) and self._unused.isdisjoint(bits):
            return [slice(0, len(bits))]
        cuts, start = [], 0
        for part in self._names.parts(bits, self._unused):
            cuts.append(slice(start, start + len(part)))
            start += len(part)
        return cuts

    def name(self, bits: Bits) -> list[_Piece]:
        """Define ``bits``, each part of them as a signal of its own."""
        pieces = []
        for cut in self.cuts(bits):
            part = bits[cut]
            # Linters leave signals alone that say in their name that nothing reads them.
            unused = part[0] in self._unused
            name = self._names.number("unused_") if unused else self._names.of(part)
            self.define(name, part)
            pieces.append((name, part))
        return pieces

    def stands_inside(self, cell: PlainCell, text: str) -> bool:
        """Whether ``text``, the expression of ``cell``, will stand where ``cell`` is read."""
        result = cell.result
        reader, place = self._readers.get(result[0], (-1, 0))
        inside = (
            len(text) <= _INLINE
            # Beside anything unsigned it would shift zeros in (IEEE 1364-2005, 5.5.1).
            and cell.kind is not CellKind.RIGHT_SIGNED
            and not self._names.is_known(result)
            and all(
                self.uses[bit] == 1 and self._readers[bit] == (reader, place + number)
                for number, bit in enumerate(result)
            )
        )
        if inside:
            self._waiting[result[0]] = result, text
        return inside

    def text(self, bits: Bits, *, inside: bool = False) -> str:
        """An expression of ``bits``, in parentheses if need be to stand ``inside`` another one."""
        parts = self.parts(bits)
        if len(parts) == 1 and inside and bits[0] in self._waiting:
            return f"({parts[0]})"
        return joined(parts)

    def parts(self, bits: Bits) -> list[str]:
        """Expressions whose concatenation is ``bits``, the most significant first."""
        parts, place = [], 0
        while place < len(bits):
            part, count = self._part(bits, place)
            parts.append(part)
            place += count
        return parts[::-1]

    def _part(self, bits: Bits, place: int) -> tuple[str, int]:
        """The longest expression that begins at ``place``, and how many bits it covers."""
        first, end = bits[place], place + 1
        if first in self._waiting:
            result, text = self._waiting[first]
            return text, len(result)
        if first < 2:
            while end < len(bits) and bits[end] < 2:
                end += 1
            return constant(bits[place:end]), end - place
        name, low, width = self._places[first]
        while end < len(bits) and self._places.get(bits[end]) == (name, low + end - place, width):
            end += 1
        high = low + end - place - 1
        if (low, high) != (0, width - 1):
            name += f"[{high}]" if low == high else f"[{high}:{low}]"
        return name, end - place

    def _reads(self, design: PlainDesign) -> Iterator[Bits]:
        """Everything that is read, in the parts and as often as it is written in the module."""
        for cell in design.cells:
            yield from cell.operands
        blocks = {(x.enable, x.reset): x.conditions for x in design.registers}
        for conditions in blocks.values():
            yield from ((bit,) for bit in conditions)
        for register in design.registers:
            yield from (register.following[cut] for cut in self.cuts(register.result))
        for memory in design.memories:
            for read in memory.reads:
                yield read.address
            for write in memory.writes:
                yield write.address
                for bit, places in stores(write):
                    yield (bit,)
                    yield write.data[places]
        yield from (port.bits for port in design.ports if port.output)
