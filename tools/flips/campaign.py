"""A campaign flips bits of a bitstream's LUTs in a batch, and collects the results.

Each flip has one instance; the last instance has no flip.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from bitlane.errors import BitlaneError
from bitlane_boards.pins import Netlist
from bitlane_boards.readback import LogicCell
from cppsim import Batch, Program
from cppsim.stored import store, write_folder
from flips.circuit import FlippableCircuit, FlippableLut
from flips.outcome import FlipOutcome, Flips
from flips.stimulus import Stimulus


def all_flips(cells: Sequence[LogicCell], stimulus: Stimulus) -> Flips:
    """Return every bit of the LUTs of ``cells`` that levels at their inputs can choose.

    ``stimulus`` was composed for ``cells``.
    """
    pairs = [(number, row) for number, cell in enumerate(cells) for row in cell.rows]
    luts, rows = np.array(pairs, np.int64).reshape(-1, 2).T
    locations = np.array([(x.x, x.y, x.number) for x in cells], np.int64).reshape(-1, 3)
    return Flips(luts, rows, locations[luts], stimulus.reached, stimulus.longest)


_NAMED = ("greeting", "operators", "memory")
"""Sections of every stimulus; all others are random exchanges."""

_PARTS = 4


@dataclass(frozen=True)
class FlipCampaign:
    """``flips`` of ``cells`` of ``netlist``, with ``stimulus`` at the board's line."""

    netlist: Netlist
    cells: Sequence[LogicCell]
    flips: Flips
    stimulus: Stimulus

    def sampled(self, count: int, seed: int) -> "FlipCampaign":
        """Return a campaign of ``count`` random flips, in their order."""
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
        """The number of instances: one for each flip, and one without."""
        return len(self.flips) + 1

    def batch(self, backend: str = "auto") -> Batch:
        """Return the batch of all instances. Raises ``BatchError``."""
        return Batch(FlipStand(self.circuit, self.stimulus), self.instances, backend)

    def program(self) -> Program:
        """Return the program that runs the stimulus and reads the ports after each part."""
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
        """Return the outcome of ``results``, which `program` gave."""
        return FlipOutcome.of(self.flips, [name for name, _ in self.parts()], results)

    def export(self, folder: Path) -> None:
        """Write a folder that ``python -m cppsim.batch`` runs where only NumPy and CuPy are.

        Compiles nothing and allocates no memory for the instances. Raises ``BatchError``.
        """
        stand = FlipStand(self.circuit, self.stimulus)
        design = store(stand)
        rows = np.frombuffer(design.rows, np.uint8)[None]
        write_folder(folder, design, self.instances, rows, self.program())
        self.flips.save(folder / "flips.npz", [name for name, _ in self.parts()])

    def parts(self) -> list[tuple[str, int]]:
        """Return the parts of the stimulus and the bit at which each ends.

        The random exchanges form four parts of equal numbers.
        """
        sections = self.stimulus.sections
        chosen = [x.end for x in sections if x.name not in _NAMED]
        count = min(_PARTS, len(chosen))
        quarters = [chosen[len(chosen) * k // count - 1] for k in range(1, count + 1)]
        parts = [(x.name, x.end) for x in sections if x.name in _NAMED]
        parts += [(f"exchanges, part {number}", end) for number, end in enumerate(quarters, 1)]
        return sorted(parts, key=lambda part: part[1])


_SIGNATURE_BITS = 64

_POLYNOMIAL = 0x42F0E1EBA9EA3693
"""The polynomial of CRC-64/ECMA-182 without its highest bit; a signature is a pin's CRC."""

_ROW = 32
"""Levels in a row of the stimulus memory."""


class FlipStand(wiring.Component):
    """``circuit`` with ``stimulus`` at its pin ``rx``, from the first cycle on.

    Members
    -------
    flip_lut, flip_row : ``In``
        Connected to the circuit.
    line : ``Out(64)``
        The CRC of the pin ``tx``, one level a cycle. The CRCs of two runs of ``n`` cycles that
        differ are equal with a probability of 1 in 2**64, about ``n`` in 2**64 at worst.
    leds : ``Out(64)``
        One CRC of all other outputs, bit after bit.
    addressed : ``Out(1)``
        In some cycle before this one the inputs of the flipped LUT chose the flipped row.

    ``rx`` is high after the end of the stimulus.
    """

    def __init__(self, circuit: FlippableCircuit, stimulus: Stimulus) -> None:
        self._circuit = circuit
        self._stimulus = stimulus
        super().__init__(
            {
                "flip_lut": In(len(circuit.flip_lut)),
                "flip_row": In(len(circuit.flip_row)),
                "line": Out(_SIGNATURE_BITS),
                "leds": Out(_SIGNATURE_BITS),
                "addressed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        circuit: Any = self._circuit
        m.submodules.circuit = circuit
        others = [
            getattr(circuit, name)
            for name, member in circuit.signature.members.items()
            if member.flow == Out and name not in ("tx", "addressed")
        ]
        m.d.comb += [
            circuit.flip_lut.eq(self.flip_lut),
            circuit.flip_row.eq(self.flip_row),
            circuit.rx.eq(self._level(m)),
        ]
        m.d.sync += [
            self.addressed.eq(self.addressed | circuit.addressed),
            self.line.eq(_taken(self.line, circuit.tx)),
        ]
        if others:
            state: Value = self.leds
            for bit in Cat(others):
                state = _taken(state, bit)
            m.d.sync += self.leds.eq(state)
        return m

    def _level(self, m: Module) -> Value:
        """Return the level of the stimulus in this cycle, from a memory of rows."""
        levels = [int(level) for level in self._stimulus.levels]
        levels += [1] * (-len(levels) % _ROW + _ROW)
        rows = [
            sum(level << bit for bit, level in enumerate(levels[first : first + _ROW]))
            for first in range(0, len(levels), _ROW)
        ]
        memory: Any = Memory(shape=_ROW, depth=len(rows), init=rows)
        m.submodules.stimulus = memory
        port = memory.read_port()
        timer = Signal(range(self._stimulus.divider))
        left = Signal(range(_ROW))
        row = Signal(_ROW, init=rows[0])
        ended = Signal()
        address = Signal(range(len(rows)), init=min(1, len(rows) - 1))
        m.d.comb += port.addr.eq(address)
        m.d.sync += timer.eq(timer + 1)
        with m.If(timer == self._stimulus.divider - 1):
            m.d.sync += [timer.eq(0), row.eq(row >> 1), left.eq(left + 1)]
            with m.If(left == _ROW - 1):
                m.d.sync += [left.eq(0), row.eq(port.data)]
                with m.If(address == len(rows) - 1):
                    m.d.sync += ended.eq(1)
                with m.Else():
                    m.d.sync += address.eq(address + 1)
        return row[0] | ended


def _taken(state: Value, bit: Value) -> Value:
    """Return the CRC ``state`` after one more bit."""
    leaves = state[-1] ^ bit
    shifted = Cat(0, state[:-1])
    return shifted ^ (leaves.replicate(_SIGNATURE_BITS) & _POLYNOMIAL)
