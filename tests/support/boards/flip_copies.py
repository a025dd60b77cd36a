"""A campaign's flips, simulated on flipped copies of the netlist beside it. No tests here."""

from bitlane_boards.flips.campaign import FlipCampaign
from bitlane_boards.flips.stimulus import Stimulus, play
from bitlane_sim.pins import COPIES, GateModel, PinSimulation
from bitlane_sim.pins.netlist import FlippedRow, Netlist

__all__ = ["line_crc", "seen_by_copies"]


def seen_by_copies(campaign: FlipCampaign, *, pins: bool) -> list[bool]:
    """Return for each flip whether it shows on the line, or with ``pins`` at any output.

    A flip that makes a LUT feed itself and never settle counts as seen.
    """
    flips = list(zip(campaign.flips.luts, campaign.flips.rows, strict=True))
    seen: list[bool] = []
    for first in range(0, len(flips), COPIES):
        cells = [(campaign.cells[lut], row) for lut, row in flips[first : first + COPIES]]
        rows = [FlippedRow(x.inputs, x.output, x.table, int(row)) for x, row in cells]
        model = GateModel(campaign.netlist, "copies", flips=rows)
        if pins:
            model.watch_pins()
        simulation = PinSimulation(model, campaign.stimulus.divider, busy="")
        play(campaign.stimulus, simulation)
        simulation.close()
        seen += [number in model.apart for number in range(len(rows))]
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
