"""A campaign: which bits of a bitstream's LUTs are flipped, the batch of them, and what it shows.

Every bit that can make a difference has an instance of its own, and the last one has no flip.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bitlane.errors import BitlaneError
from bitlane_sim.pins.netlist import Netlist
from cppsim import Batch, Program
from cppsim.batch.circuit import batch_circuit
from cppsim.batch.folder import write_folder
from cppsim.batch.source import write_batch

from ..readback.ice40 import LogicCell
from .circuit import FlippableCircuit, FlippableLut
from .outcome import FlipOutcome, Flips
from .stand import FlipStand
from .stimulus import Stimulus

__all__ = ["FlipCampaign", "all_flips"]


def all_flips(cells: Sequence[LogicCell], stimulus: Stimulus) -> Flips:
    """Every bit of the LUTs of ``cells`` that levels at their inputs can choose.

    ``stimulus`` was composed for them.
    """
    pairs = [(number, row) for number, cell in enumerate(cells) for row in cell.rows]
    luts, rows = np.array(pairs, np.int64).reshape(-1, 2).T
    places = np.array([(x.x, x.y, x.number) for x in cells], np.int64).reshape(-1, 3)
    return Flips(luts, rows, places[luts], stimulus.reached, stimulus.longest)


_NAMED = ("greeting", "operators", "memory")
"""Sections of a stimulus that are told apart from those that were chosen."""

_PARTS = 4


@dataclass(frozen=True)
class _PowerOn:
    """Instances that begin alike, as a folder has to know them."""

    instances: int
    rows: NDArray[np.uint8]
    fresh = True

    def all_rows(self) -> NDArray[np.uint8]:
        return self.rows


@dataclass(frozen=True)
class FlipCampaign:
    """``flips`` of ``cells`` of ``netlist``, with ``stimulus`` at the board's line."""

    netlist: Netlist
    cells: Sequence[LogicCell]
    flips: Flips
    stimulus: Stimulus

    def sampled(self, count: int, seed: int) -> "FlipCampaign":
        """``count`` of the flips at random, in their order."""
        if not 0 < count <= len(self.flips):
            raise BitlaneError(f"instances: {count}; expected 1 to {len(self.flips)}, the bits")
        chosen = sorted(random.Random(seed).sample(range(len(self.flips)), count))
        return FlipCampaign(self.netlist, self.cells, self.flips.those(chosen), self.stimulus)

    @cached_property
    def circuit(self) -> FlippableCircuit:
        luts = [FlippableLut(cell.inputs, cell.output, cell.table) for cell in self.cells]
        return FlippableCircuit(self.netlist, luts)

    @property
    def instances(self) -> int:
        """Flips, and one that has none."""
        return len(self.flips) + 1

    def batch(self, backend: str = "auto") -> Batch:
        """All instances. Raises ``BatchError``."""
        return Batch(FlipStand(self.circuit, self.stimulus), self.instances, backend)

    def program(self) -> Program:
        """The stimulus from power-on, with looks at all that was noted where a section ends."""
        program = Program()
        program.set("flip_lut", np.append(self.flips.luts, self.circuit.none))
        program.set("flip_row", np.append(self.flips.rows, 0))
        done = 0
        for number, end in enumerate(end for _, end in self.parts()):
            program.step((end - done) * self.stimulus.divider)
            done = end
            for port in ("line", "leds", "addressed"):
                program.get(port, f"{port} {number}")
        return program

    def outcome(self, results: Mapping[str, NDArray[Any]]) -> FlipOutcome:
        """What ``results`` of `program` say."""
        return FlipOutcome.of(self.flips, [name for name, _ in self.parts()], results)

    def export(self, folder: Path) -> None:
        """A folder that ``python -m cppsim.batch`` runs where only NumPy and CuPy are.

        Neither compiles it nor takes memory for the instances: this computer may not have it.
        Raises ``BatchError``.
        """
        written = write_batch(batch_circuit(FlipStand(self.circuit, self.stimulus)))
        rows = np.frombuffer(written.rows, np.uint8)[None]
        write_folder(folder, written, cast(Any, _PowerOn(self.instances, rows)), self.program())
        self.flips.save(folder / "flips.npz", [name for name, _ in self.parts()])

    def parts(self) -> list[tuple[str, int]]:
        """Parts of the stimulus that are told apart, and the bits at which they end.

        Pieces that were chosen are four parts of alike many.
        """
        sections = self.stimulus.sections
        chosen = [x.end for x in sections if x.name not in _NAMED]
        count = min(_PARTS, len(chosen))
        quarters = [chosen[len(chosen) * k // count - 1] for k in range(1, count + 1)]
        parts = [(x.name, x.end) for x in sections if x.name in _NAMED]
        parts += [(f"pieces, part {number}", end) for number, end in enumerate(quarters, 1)]
        return sorted(parts, key=lambda part: part[1])
