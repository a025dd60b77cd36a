"""A test bench for a flippable circuit: it drives the line and keeps a CRC of the outputs."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from flips.circuit import FlippableCircuit
from flips.stimulus import Stimulus

__all__ = ["FlipStand"]

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
