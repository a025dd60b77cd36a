"""The stimulus of a campaign, composed on the board without flips and stored as levels.

A greedy search chooses the random exchanges in which LUTs look up rows that few others look up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from bitlane_boards.board import Board
from bitlane_boards.pins import Netlist, PinSimulation
from bitlane_boards.readback import LogicCell
from flips.exchanges import ExchangeWriter
from support.sim.flip_copies import FlippedCopies

_START = 100e-6
"""Seconds from power-on to the first request."""

_QUIET = 60
"""Idle cycles of both lines after which an answer is complete."""

_LONGEST = 30_000
"""Maximum length of an answer, in cycles."""

_WORTH = 0.7
"""Factor by which the gain of a row falls each time that an exchange looks it up.

A look-up shows at a pin only now and then, so a row is worth more than one.
"""

_AT_A_TIME = 10
"""Exchanges chosen by estimate before all chosen exchanges are simulated together."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a stimulus: its name, its first bit, and the bit after its last."""

    name: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Stimulus:
    """Levels at a board's pin ``rx`` from power-on: ``levels[k]`` for ``divider`` cycles.

    ``levels`` are ``uint8``; ``exchanges`` are the seeds of the chosen exchanges. ``reached`` has
    an entry for each row that the inputs of a LUT can choose, in the order of the cells: true if
    the row was looked up with this stimulus or with the pool, in up to ``longest`` cycles.
    """

    levels: NDArray[np.uint8]
    divider: int
    sections: tuple[Section, ...]
    exchanges: tuple[int, ...]
    reached: NDArray[np.bool_]
    longest: int

    @property
    def cycles(self) -> int:
        return self.divider * len(self.levels)


def _whole(netlist: Netlist, cells: Iterable[LogicCell]) -> Netlist:
    """Return ``netlist`` with all inputs of its LUTs, even inputs that the tables ignore."""
    luts = netlist.luts.copy()
    numbers = {int(output): number for number, output in enumerate(luts["output"])}
    for cell in cells:
        entry = luts[numbers[cell.output]]
        entry["inputs"], entry["table"] = cell.inputs, cell.table
    return replace(netlist, luts=luts)


def compose(
    board: Board, netlist: Netlist, cells: Sequence[LogicCell], most: int, pool: int
) -> Stimulus:
    """Return a stimulus of up to ``most`` cycles, with exchanges chosen from ``pool``.

    It sends the greeting, every operator and the chosen exchanges, and reads a digest of memory.
    Without exchanges it may be longer than ``most``. The same arguments give the same stimulus.
    """
    return _Composer(board, netlist, cells).composed(most, pool)


@dataclass(slots=True)
class _Line:
    """Sends levels to the board's pin and records them."""

    simulation: PinSimulation
    divider: int
    levels: list[int] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def send(self, name: str, bursts: Iterable[Sequence[int]]) -> None:
        """Send ``bursts``, each after the answer to the burst before."""
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
        self._netlist = _whole(netlist, cells)
        numbers = {int(output): number for number, output in enumerate(netlist.luts["output"])}
        rows = [(numbers[cell.output], row) for cell in cells for row in cell.rows]
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
        """Return the rows that each of ``pool`` exchanges looks up, and its cycles."""
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

    def _tried(self, exchanges: Sequence[int]) -> tuple[Stimulus, NDArray[np.float32]]:
        """Return the stimulus of ``exchanges``, and how many sections look up each row."""
        model, line, traffic = self._begun()
        times = self._looked_up(model)
        for seed in exchanges:
            model.watch_rows()
            self._send(line, traffic, seed)
            times += self._looked_up(model)
        model.watch_rows()
        line.send("memory", traffic.folding())
        times += self._looked_up(model)
        line.simulation.close()
        levels = np.array(line.levels, np.uint8)
        sections = tuple(line.sections)
        return Stimulus(levels, line.divider, sections, tuple(exchanges), times > 0, 0), times

    def _looked_up(self, model: FlippedCopies) -> NDArray[np.float32]:
        """Return 1 for each of `_rows` that was looked up since ``watch_rows``, else 0."""
        return (model.chosen[self._luts] >> self._rows & 1).astype(np.float32)

    def _begun(self) -> tuple[FlippedCopies, _Line, ExchangeWriter]:
        model = FlippedCopies(self._netlist, self._board.name, [])
        model.watch_rows()
        divider = self._board.divider
        line = _Line(PinSimulation(model, divider, busy=""), divider)
        line.hold(1, round(_START * self._board.clock_hz / divider))
        traffic = ExchangeWriter(self._board.configuration)
        line.send("greeting", traffic.greeting())
        line.send("operators", traffic.operators())
        return model, line, traffic

    @staticmethod
    def _send(line: _Line, traffic: ExchangeWriter, seed: int) -> None:
        line.send(f"exchange {seed}", traffic.exchange(seed))
        if line.simulation.get("fault"):
            line.send(f"recovery {seed}", traffic.recovery())
