"""What is sent to a board whose LUTs are flipped: composed on the sound board, and kept as levels.

Of many random pieces those are taken that make LUTs look up rows which nothing before them did.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from bitlane_sim.pins import GateModel, PinSimulation
from bitlane_sim.pins.netlist import Netlist

from ..board import Board
from ..readback.ice40 import LogicCell
from .pieces import PieceWriter

__all__ = ["Section", "Stimulus", "compose", "whole"]

_START = 100e-6
"""Seconds that a host leaves a board after power-on."""

_QUIET = 60
"""Cycles without anything on the lines after which the board has answered."""

_LONGEST = 30_000
"""Cycles that it may take over an answer."""

_WORTH = 0.7
"""What it is worth that a row is looked up once more, of what it was the time before.

What comes of it shows now and then only: a row that was looked up once has hardly been tried.
"""

_AT_A_TIME = 10
"""Pieces that are taken before it is looked at what those taken so far have done together."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a stimulus: its name, and the bits at which it begins and ends."""

    name: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Stimulus:
    """Levels at a board's pin ``rx`` from power-on: ``levels[k]`` for ``divider`` cycles.

    ``levels`` are ``uint8``; ``pieces`` are the seeds of what was taken. ``reached`` has each row
    of each LUT's that can be chosen, in the order of the cells, and is whether it ever was: here or
    in the longest run while this was composed, of ``longest`` cycles.
    """

    levels: NDArray[np.uint8]
    divider: int
    sections: tuple[Section, ...]
    pieces: tuple[int, ...]
    reached: NDArray[np.bool_]
    longest: int

    @property
    def cycles(self) -> int:
        return self.divider * len(self.levels)


def whole(netlist: Netlist, cells: Iterable[LogicCell]) -> Netlist:
    """``netlist`` with all inputs of its LUTs, those too that make no difference."""
    luts = netlist.luts.copy()
    place = {int(output): number for number, output in enumerate(luts["output"])}
    for cell in cells:
        entry = luts[place[cell.output]]
        entry["inputs"], entry["table"] = cell.inputs, cell.table
    return replace(netlist, luts=luts)


def compose(
    board: Board, netlist: Netlist, cells: Sequence[LogicCell], most: int, pool: int
) -> Stimulus:
    """A stimulus of up to ``most`` cycles, of ``pool`` pieces to choose from, always the same.

    It greets the board, uses each of its operators, goes on with what was chosen, and reads what
    has become of all of memory. Where that takes longer already, nothing is chosen.
    """
    return _Composer(board, netlist, cells).composed(most, pool)


@dataclass(slots=True)
class _Line:
    """The board's pins while a stimulus is composed: levels go in, and are noted."""

    simulation: PinSimulation
    divider: int
    levels: list[int] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def send(self, name: str, bursts: Iterable[Sequence[int]]) -> None:
        """Send ``bursts``, each once the board has answered the last."""
        first = len(self.levels)
        for burst in bursts:
            for level, bits in groupby(burst):
                self.hold(level, sum(1 for _ in bits))
            self._rest()
        self.sections.append(Section(name, first, len(self.levels)))

    def hold(self, level: int, bits: int) -> None:
        self.simulation.set("rx", level)
        self.simulation.run(bits * self.divider)
        self.levels += [level] * bits

    def _rest(self) -> None:
        simulation = self.simulation
        simulation.set("rx", 1)
        before = simulation.cycle
        simulation.settle(_QUIET, _LONGEST)
        simulation.run(-simulation.cycle % self.divider)
        simulation.receive()
        self.levels += [1] * ((simulation.cycle - before) // self.divider)


class _Composer:
    def __init__(self, board: Board, netlist: Netlist, cells: Sequence[LogicCell]) -> None:
        self._board = board
        self._netlist = whole(netlist, cells)
        place = {int(output): number for number, output in enumerate(netlist.luts["output"])}
        rows = [(place[cell.output], row) for cell in cells for row in cell.rows]
        self._luts, self._rows = np.array(rows, np.uint16).reshape(-1, 2).T

    def composed(self, most: int, pool: int) -> Stimulus:
        looked_up, cycles = self._pool(pool)
        reached = looked_up.any(axis=0)
        chosen: list[int] = []
        while True:
            stimulus, times = self._tried(chosen)
            left = most - stimulus.cycles
            found = 0
            while found < _AT_A_TIME and pool:
                gain = looked_up @ (_WORTH**times).astype(np.float32) / cycles
                gain[chosen] = 0
                gain[cycles > left] = 0
                best = int(np.argmax(gain))
                if not gain[best]:
                    break
                chosen.append(best)
                times = times + looked_up[best]
                left -= cycles[best]
                found += 1
            if not found:
                break
        # Together they may take a little longer than apart.
        while chosen and stimulus.cycles > most:
            chosen.pop()
            stimulus, times = self._tried(chosen)
        longest = max(int(cycles.sum()), stimulus.cycles)
        return replace(stimulus, reached=reached | (times > 0), longest=longest)

    def _pool(self, pool: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Which rows each of ``pool`` pieces makes LUTs look up, and the cycles it takes."""
        model, line, traffic = self._begun()
        looked_up = np.zeros((pool, self._rows.size), np.float32)
        cycles = np.zeros(pool, np.int64)
        for seed in range(pool):
            model.watch_rows()
            before = line.simulation.cycle
            self._send(line, traffic, seed)
            looked_up[seed] = self._looked_up(model)
            cycles[seed] = line.simulation.cycle - before
        line.simulation.close()
        return looked_up, cycles

    def _tried(self, pieces: Sequence[int]) -> tuple[Stimulus, NDArray[np.float32]]:
        """The stimulus of ``pieces``, and in how many of its parts each row is looked up."""
        model, line, traffic = self._begun()
        times = self._looked_up(model)
        for seed in pieces:
            model.watch_rows()
            self._send(line, traffic, seed)
            times += self._looked_up(model)
        model.watch_rows()
        line.send("memory", traffic.folding())
        times += self._looked_up(model)
        line.simulation.close()
        levels = np.array(line.levels, np.uint8)
        sections = tuple(line.sections)
        return Stimulus(levels, line.divider, sections, tuple(pieces), times > 0, 0), times

    def _looked_up(self, model: GateModel) -> NDArray[np.float32]:
        """1 for each row of `_rows` that was looked up since they are watched, else 0."""
        return (model.chosen[self._luts] >> self._rows & 1).astype(np.float32)

    def _begun(self) -> tuple[GateModel, _Line, PieceWriter]:
        model = GateModel(self._netlist, self._board.name)
        model.watch_rows()
        divider = self._board.divider
        line = _Line(PinSimulation(model, divider, busy=""), divider)
        line.hold(1, round(_START * self._board.clock_hz / divider))
        traffic = PieceWriter(self._board.configuration)
        line.send("greeting", traffic.greeting())
        line.send("operators", traffic.operators())
        return model, line, traffic

    @staticmethod
    def _send(line: _Line, traffic: PieceWriter, seed: int) -> None:
        line.send(f"piece {seed}", traffic.piece(seed))
        if line.simulation.get("fault"):
            line.send(f"mending {seed}", traffic.mended())
