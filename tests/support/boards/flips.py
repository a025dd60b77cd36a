"""Flip single bits of LUTs that a bitstream uses, as a fault in the file would. No tests here."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bitlane_boards.readback.asc import Bitstream
from bitlane_boards.readback.ice40 import LUT_BITS, LogicCell
from bitlane_sim.pins.netlist import FlippedRow

__all__ = ["Flip", "flipped", "random_flips", "write_flipped"]


@dataclass(frozen=True, slots=True)
class Flip:
    """A flip of row ``row`` in the table of a logic cell's LUT."""

    cell: LogicCell
    row: int

    def __str__(self) -> str:
        return f"row {self.row} of LUT {self.cell.number} in tile {self.cell.x},{self.cell.y}"

    @property
    def table(self) -> FlippedRow:
        """The same in the netlist that the cell was extracted with."""
        cell = self.cell
        return FlippedRow(cell.inputs, cell.output, cell.table, self.row)

    @property
    def place(self) -> tuple[int, int]:
        """Row and column of the bit in its tile."""
        return self.cell.places[LUT_BITS[self.row]]


def random_flips(cells: Sequence[LogicCell], count: int, seed: int) -> list[Flip]:
    """``count`` different bits of the LUTs of ``cells``, all equally likely.

    Of those that their inputs can choose: what a row says that needs an input which is wired to
    nothing cannot matter.
    """
    flips = [Flip(cell, row) for cell in cells for row in cell.rows]
    return random.Random(seed).sample(flips, count)


@contextmanager
def flipped(bits: Bitstream, flip: Flip) -> Iterator[Bitstream]:
    """``bits`` with ``flip`` in them; it is taken back in the end."""
    tile = bits.tiles[flip.cell.x, flip.cell.y]
    tile[flip.place] ^= 1
    try:
        yield bits
    finally:
        tile[flip.place] ^= 1


def write_flipped(bits: Bitstream, flip: Flip, path: Path) -> None:
    """Write the packed bitstream with ``flip`` in it to ``path``."""
    with flipped(bits, flip):
        bits.write(path)
