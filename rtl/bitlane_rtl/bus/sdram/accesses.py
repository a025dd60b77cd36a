"""Gives READ and WRITE, one a beat: the data lines rest only where they turn round."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .burst import ChipLayout, PlacedBurst
from .part import SdramTiming

__all__ = ["Accesses"]


class Accesses(wiring.Component):
    """Accesses the beats of bursts whose rows are open.

    Members
    -------
    i : ``In(stream.Signature(PlacedBurst(layout)))``
    goes : ``Out(1)``
        READ or WRITE of the beat ``beat``, in this cycle.
    beat : ``Out(PlacedBurst(layout))``
        Its ``column`` is that of the beat; ``length`` counts those that follow in its burst.
    last : ``Out(1)``
        It is the burst's last.
    drives : ``Out(1)``
        The data lines are to be driven in the next cycle: from the one before a WRITE's first word
        to that of its last.
    kept : ``Out(2**bank_bits)``
        Banks that must not be closed in this cycle: tRAS, tWR, and words that are still to come.
    opens : ``In(2**bank_bits)``
        A bank whose row is opened, in this cycle.
    busy : ``Out(1)``
        A burst is held, or a bank kept.

    Latency: a beat goes 1 cycle after its burst came, at the earliest. Throughput: a beat in as
    many cycles as it has words; ``cas + 2`` more from READ to WRITE.
    """

    def __init__(self, layout: ChipLayout, timing: SdramTiming) -> None:
        self._layout = layout
        self._timing = timing
        self._banks = 1 << layout.part.bank_bits
        burst = PlacedBurst(layout)
        super().__init__(
            {
                "i": In(stream.Signature(burst)),
                "goes": Out(1),
                "beat": Out(burst),
                "last": Out(1),
                "drives": Out(1),
                "kept": Out(self._banks),
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
            # A chip's last word leaves the lines within half a cycle; one more to be safe.
            self.drives.eq((writing & (turn == 0)) | (driven & (slot != 0))),
            self.goes.eq(active & (slot == 0) & (~burst.write | driven)),
            self.i.ready.eq(~active | (self.goes & self.last)),
        ]
        m.d.sync += [
            driven.eq(self.drives),
            slot.eq(Mux(self.goes, words - 1, Mux(slot != 0, slot - 1, 0))),
            turn.eq(Mux(self.goes & ~burst.write, timing.cas + words, Mux(turn != 0, turn - 1, 0))),
        ]
        with m.If(self.goes):
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
        """A counter for each bank: cycles until it may be closed."""
        words, timing = self._layout.words, self._timing
        # After an access tRAS may have a rest to run.
        rest = timing.active - timing.activate_to_access
        after_read = max(words, rest)
        after_write = max(words - 1 + timing.write_recovery, rest)
        longest = max(after_write, after_read, timing.active)
        lefts = []
        for bank in range(self._banks):
            left = Signal(range(longest), name=f"left_{bank}")
            lefts.append(left)
            mine = active & (burst.bank == bank)
            with m.If(self.goes & mine):
                m.d.sync += left.eq(Mux(burst.write, after_write, after_read) - 1)
            with m.Elif(self.opens[bank]):
                m.d.sync += left.eq(timing.active - 1)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)
            m.d.comb += self.kept[bank].eq(mine | (left != 0))
        m.d.comb += self.busy.eq(active | self.kept.any())
