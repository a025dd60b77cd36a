"""Issues the column commands, READ and WRITE: one a beat."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...sdram_part import SdramTiming
from .burst import ChipLayout, PlacedBurst

__all__ = ["ColumnCommands"]


class ColumnCommands(wiring.Component):
    """Issues READ or WRITE for each beat of the bursts whose rows are open.

    Members
    -------
    i
        Bursts whose rows are open.
    stall
        The command pins are taken in this cycle.
    fires
        READ or WRITE of ``beat`` is issued in this cycle.
    beat
        The next beat. ``column`` is the beat's column; ``length`` is the number of beats that
        follow in its burst.
    last
        ``beat`` is the last of its burst.
    drives
        The data lines must be driven in the next cycle. It is 1 from the cycle before a WRITE's
        first word to the cycle of its last.
    held
        Banks that must not be closed in this cycle: words are outstanding, or tRAS or tWR has not
        passed.
    opens
        Banks that receive ACTIVATE in this cycle.
    busy
        A burst is stored, or a bank is held.

    Latency: ``fires`` is 1 at the earliest 1 cycle after the burst was accepted. Throughput: a beat
    takes a cycle for each word; a turn from READ to WRITE takes ``cas + 2`` more.
    """

    def __init__(self, layout: ChipLayout, timing: SdramTiming) -> None:
        self._layout = layout
        self._timing = timing
        self._banks = 1 << layout.part.bank_bits
        burst = PlacedBurst(layout)
        super().__init__(
            {
                "i": In(stream.Signature(burst)),
                "stall": In(1),
                "fires": Out(1),
                "beat": Out(burst),
                "last": Out(1),
                "drives": Out(1),
                "held": Out(self._banks),
                "opens": In(self._banks),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words, timing = self._layout.words, self._timing
        burst = Signal(PlacedBurst(self._layout), reset_less=True)
        active = Signal()
        slot = Signal(range(words))
        turn = Signal(range(timing.cas + words + 1))
        driven = Signal()
        writing = active & burst.write
        m.d.comb += [
            self.beat.eq(burst),
            self.last.eq(burst.length == 0),
            # The chip releases the lines half a cycle after its last word; `turn` adds a cycle.
            self.drives.eq((writing & (turn == 0)) | (driven & (slot != 0))),
            self.fires.eq(active & ~self.stall & (slot == 0) & (~burst.write | driven)),
            self.i.ready.eq(~active | (self.fires & self.last)),
        ]
        m.d.sync += [
            driven.eq(self.drives),
            slot.eq(Mux(self.fires, words - 1, Mux(slot != 0, slot - 1, 0))),
            turn.eq(
                Mux(self.fires & ~burst.write, timing.cas + words, Mux(turn != 0, turn - 1, 0))
            ),
        ]
        with m.If(self.fires):
            low = slice(0, self._layout.beat_bits)
            m.d.sync += [
                burst.column[low].eq(burst.column[low] + 1),
                burst.length.eq(burst.length - 1),
            ]
        with m.If(self.i.ready):
            m.d.sync += [active.eq(self.i.valid), burst.eq(self.i.payload)]
        self._keep(m, burst, active)
        return m

    def _keep(self, m: Module, burst: Any, active: Signal) -> None:
        """Count for each bank the cycles until it may be closed."""
        words, timing = self._layout.words, self._timing
        # Cycles of tRAS that may be left after an access.
        rest = timing.active - timing.activate_to_access
        after_read = max(words, rest)
        after_write = max(words - 1 + timing.write_recovery, rest)
        longest = max(after_write, after_read, timing.active)
        lefts = []
        for bank in range(self._banks):
            left = Signal(range(longest), name=f"left_{bank}")
            lefts.append(left)
            selected = active & (burst.bank == bank)
            with m.If(self.fires & selected):
                m.d.sync += left.eq(Mux(burst.write, after_write, after_read) - 1)
            with m.Elif(self.opens[bank]):
                m.d.sync += left.eq(timing.active - 1)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)
            m.d.comb += self.held[bank].eq(selected | (left != 0))
        m.d.comb += self.busy.eq(active | self.held.any())
