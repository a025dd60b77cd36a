"""The connections of an iCE40: the switches that a bitstream closes.

It knows wires and the cells at their ends, not the function of cells.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .asc import Bitstream, BitstreamError
from .chipdb import ChipDatabase

__all__ = [
    "RAM_OUT",
    "SPRAM_OUT",
    "SPRAM_PINS",
    "LogicPin",
    "PadPin",
    "PllPin",
    "Routing",
]


class LogicPin:
    """Numbers of a logic cell's pins after its 4 inputs."""

    OUT, LUT_OUT, CIN, COUT, ENABLE, CLOCK, RESET = range(4, 11)


class PadPin:
    """Numbers of an I/O cell's pins: output enable, output and input."""

    OE, OUT, IN = 4, 5, 7


class PllPin:
    """Numbers of a PLL's pins: lock, and first output."""

    LOCK, OUT = 10, 11


SPRAM_PINS = sorted(
    [f"ADDRESS_{bit}" for bit in range(14)]
    + [f"{name}_{bit}" for name in ("DATAIN", "DATAOUT") for bit in range(16)]
    + [f"MASKWREN_{bit}" for bit in range(4)]
    + ["CHIPSELECT", "CLOCK", "POWEROFF", "SLEEP", "STANDBY", "WREN"]
)
"""Names of a single-port RAM's pins, in nextpnr's order."""

SPRAM_OUT = {SPRAM_PINS.index(f"DATAOUT_{bit}"): bit for bit in range(16)}
"""Bit of the data by the pin's number."""


RAM_OUT = {16 + bit: bit for bit in range(16)}

_OUTPUTS: dict[str, tuple[int, ...]] = {
    "lc": (LogicPin.OUT, LogicPin.LUT_OUT, LogicPin.COUT),
    "io": (PadPin.IN, PadPin.IN + 1),
    "gb": (1,),
    "ram": tuple(RAM_OUT),
    "spram": tuple(SPRAM_OUT),
}

_LUT_INPUT = 4
"""The database's type of the wires in front of LUTs."""


class Routing:
    """The connections of the bitstream ``bits``.

    Attributes
    ----------
    sources
        The kind of the driving cell, the cell and the number of its pin, by wire. "carry" is the
        carry into a tile, a constant where no wire drives it.
    cells
        The cells by tile and name.

    Raises ``BitstreamError`` for a wire that is driven twice.
    """

    def __init__(self, chip: ChipDatabase, bits: Bitstream) -> None:
        self.chip, self.bits = chip, bits
        self._entries = [chip.entries(tile) for tile in range(len(chip.tiles))]
        self._driver = self._switched_on()
        self.sources = self._find_sources()
        self.cells = {
            (int(bel["x"]), int(bel["y"]), name): index
            for index, (bel, name) in enumerate(zip(chip.bels, chip.bel_names, strict=True))
        }

    def root(self, wire: int) -> int:
        """Return the first wire of the path to ``wire``. Raises ``BitstreamError`` for a ring."""
        for _ in range(len(self._driver)):
            source = int(self._driver[wire])
            if source < 0:
                return wire
            wire = source
        raise BitstreamError(f"wire {self.describe(wire)} drives itself")

    def location(self, cell: int) -> tuple[int, int, int]:
        """Return the tile and the number of a cell."""
        row = self.chip.bels[cell]
        return int(row["x"]), int(row["y"]), int(row["z"])

    def positions(self, tile: int, name: str) -> list[tuple[int, int]]:
        """Return row and column of each bit of a setting; empty if the tile does not have it."""
        return self._entries[tile].get(name, [])

    def setting(self, cell: int, tile: int, name: str, up: int = 0) -> list[int]:
        """Return the bits of a setting in a cell's tile, or in the tile ``up`` tiles above."""
        x, y, _ = self.location(cell)
        bits = self.bits.tiles[x, y + up]
        return [int(bits[position]) for position in self._entries[tile][name]]

    def lut_input(self, wire: int) -> int:
        """Return the tile's wire before a LUT's input, which nextpnr may have permuted."""
        row = self.chip.wires[wire]
        name = self.chip.wire_name(wire).removesuffix("_lut")
        return self._lut_inputs[int(row["name_x"]), int(row["name_y"]), name]

    def describe(self, wire: int) -> str:
        """Return the name and position of a wire, for messages."""
        row = self.chip.wires[wire]
        return f"{self.chip.wire_name(wire)} at {row['name_x']},{row['name_y']}"

    def _switched_on(self) -> NDArray[np.int32]:
        """Return for every wire the wire that drives it through a closed switch, or -1."""
        chip = self.chip
        configuration = np.zeros((chip.height, chip.width, 16, 64), np.uint8)
        for (x, y), tile in self.bits.tiles.items():
            configuration[y, x, :, : tile.shape[1]] = tile
        switches = chip.switches
        values = np.zeros(len(switches), np.int32)
        for index in range(5):
            used = switches["bits"] > index
            at = switches[used]
            bit = configuration[at["y"], at["x"], at[f"row{index}"], at[f"column{index}"]]
            values[used] = values[used] << 1 | bit
        pips = chip.pips
        # A switch without bits is a LUT that passes an input on; here it counts as a LUT.
        real = switches["bits"][pips["switch"]] > 0
        on = real & (pips["mask"] == values[pips["switch"]])
        driver = np.full(len(chip.wires), -1, np.int32)
        driver[pips["target"][on]] = pips["source"][on]
        targets, counts = np.unique(pips["target"][on], return_counts=True)
        if (counts > 1).any():
            wire = int(targets[counts > 1][0])
            raise BitstreamError(f"wire {self.describe(wire)} has two drivers")
        return driver

    def _find_sources(self) -> dict[int, tuple[str, int, int]]:
        sources: dict[int, tuple[str, int, int]] = {}
        for cell, name in enumerate(self.chip.bel_names):
            kind = name.rstrip("0123456789").rstrip("_")
            if kind not in _OUTPUTS:
                continue
            wires = self.chip.pins(cell)
            for pin in _OUTPUTS[kind]:
                # The last logic cell of a tile has no LUT output to a next one.
                if pin in wires:
                    sources.setdefault(wires[pin], (kind, cell, pin))
            if name == "lc0":
                sources[wires[LogicPin.CIN]] = ("carry", cell, LogicPin.CIN)
        return sources

    @cached_property
    def _lut_inputs(self) -> dict[tuple[int, int, str], int]:
        chip = self.chip
        (inputs,) = np.nonzero(chip.wires["type"] == _LUT_INPUT)
        rows = chip.wires[inputs]
        return {
            (int(row["name_x"]), int(row["name_y"]), chip.wire_name(int(wire))): int(wire)
            for wire, row in zip(inputs, rows, strict=True)
        }
