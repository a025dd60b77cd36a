"""Flipped copies of a netlist or a file, which are simulated without the batch. No tests here."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from bitlane_boards.pins import GateModel, Netlist, PinSimulation
from bitlane_boards.readback import LUT_BITS, Bitstream, LogicCell
from flips.campaign import FlipCampaign
from flips.stimulus import Stimulus
from support.sim.flip_copies import COPIES, FlippedCopies, FlippedRow


@dataclass(frozen=True, slots=True)
class Flip:
    """A flip of row ``row`` in the table of a logic cell's LUT."""

    cell: LogicCell
    row: int

    def __str__(self) -> str:
        return f"row {self.row} of LUT {self.cell.number} in tile {self.cell.x},{self.cell.y}"

    @property
    def table(self) -> FlippedRow:
        """The flip in the netlist that the cell was extracted with."""
        cell = self.cell
        return FlippedRow(cell.inputs, cell.output, cell.table, self.row)

    @property
    def position(self) -> tuple[int, int]:
        """Row and column of the bit in its tile."""
        return self.cell.positions[LUT_BITS[self.row]]


def random_flips(cells: Sequence[LogicCell], count: int, seed: int) -> list[Flip]:
    """Return ``count`` different bits of the LUTs of ``cells``, all equally likely.

    Only bits that the inputs can choose: an input without a wire has a fixed level.
    """
    flips = [Flip(cell, row) for cell in cells for row in cell.rows]
    return random.Random(seed).sample(flips, count)


@contextmanager
def flipped(bits: Bitstream, flip: Flip) -> Iterator[Bitstream]:
    """Yield ``bits`` with ``flip`` in them, and undo it at the end."""
    tile = bits.tiles[flip.cell.x, flip.cell.y]
    tile[flip.position] ^= 1
    try:
        yield bits
    finally:
        tile[flip.position] ^= 1


def seen_by_copies(campaign: FlipCampaign, *, pins: bool) -> list[bool]:
    """Return for each flip whether it shows on the line, or with ``pins`` at any output.

    A flip that makes a LUT feed itself and never settle counts as seen.
    """
    flips = list(zip(campaign.flips.luts, campaign.flips.rows, strict=True))
    seen: list[bool] = []
    for first in range(0, len(flips), COPIES):
        cells = [(campaign.cells[lut], row) for lut, row in flips[first : first + COPIES]]
        rows = [FlippedRow(x.inputs, x.output, x.table, int(row)) for x, row in cells]
        model = FlippedCopies(campaign.netlist, "copies", rows)
        if pins:
            model.watch_pins()
        simulation = PinSimulation(model, campaign.stimulus.divider, busy="")
        for level, bits in groupby(campaign.stimulus.levels.tolist()):
            simulation.set("rx", level)
            simulation.run(campaign.stimulus.divider * len(list(bits)))
        simulation.close()
        seen += [number in model.diverged for number in range(len(rows))]
    return seen


def line_crc(netlist: Netlist, stimulus: Stimulus) -> int:
    """Return the CRC of the line that the sound netlist drives, over every cycle."""
    simulation = PinSimulation(GateModel(netlist, "sound"), stimulus.divider, busy="")
    crc, ones = 0, (1 << 64) - 1
    for level in stimulus.levels.tolist():
        simulation.set("rx", level)
        for _ in range(stimulus.divider):
            leaves = crc >> 63 ^ simulation.get("tx")
            crc = crc << 1 & ones ^ leaves * 0x42F0E1EBA9EA3693
            simulation.run(1)
    simulation.close()
    return crc
