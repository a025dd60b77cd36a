"""Completes beats of which only some bytes are written, for chips whose masks are not driven."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from ...abi import BEATS_PER_BLOCK
from ...streams import Fifo

__all__ = ["PartialBeats", "replaced"]


class _State(enum.Enum):
    """The next burst's progress."""

    NEW = 0
    """Neither read nor written."""
    READING = 1
    """Its partial beats are on their way from the chip."""
    READ = 2
    """Its partial beats are here."""


def replaced(old: Value, new: Value, strobe: Value) -> Value:
    """Return ``old`` with the bytes of ``new`` that ``strobe`` enables."""
    return Cat(
        Mux(enable, new.word_select(byte, 8), old.word_select(byte, 8))
        for byte, enable in enumerate(strobe)
    )


class PartialBeats(wiring.Component):
    """Has the partial beats of each burst read before the burst is written, and merges them.

    A burst is read from its first partial beat to its last one: a run of bytes has partial beats at
    its ends alone. A burst of whole beats is written at once.

    Members
    -------
    enters, strobe, last
        A beat enters the write path's FIFO in this cycle; it is the last of its burst.
    marked
        To be stored with the beat: it is partial, or an earlier one of its burst is.
    whole
        All beats of the next burst are in the FIFO, and the burst is not being read.
    write
        The next burst is to be written, not read.
    first, length
        What to read of it: the first beat, and the number of beats less one.
    granted
        The arbiter grants the next burst in this cycle, as ``write`` says.
    arrived, old, old_last
        A beat of the requested read arrives from the chip; it is the last one of that read.
    begins, is_marked
        WRITE of a beat is issued in this cycle, and its mark.
    o
        The earlier content of that beat, if the beat is partial.

    Latency: a burst with partial beats is written ``cas + words * beats + 7`` cycles later, if the
    chip does nothing else. Throughput: as the chip's.
    """

    def __init__(self, data_width: int, block: int = BEATS_PER_BLOCK) -> None:
        width, beat = data_width, range(block)
        self._width = width
        self._block = block
        super().__init__(
            {
                "enters": In(1),
                "strobe": In(width // 8),
                "last": In(1),
                "marked": Out(1),
                "whole": Out(1),
                "write": Out(1),
                "first": Out(beat),
                "length": Out(beat),
                "granted": In(1),
                "arrived": In(1),
                "old": In(width),
                "old_last": In(1),
                "begins": In(1),
                "is_marked": In(1),
                "o": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        burst = self._found(m)
        state = Signal(_State)
        m.d.comb += [
            self.whole.eq(burst.valid & (state != _State.READING)),
            self.write.eq(~burst.p.partial | (state == _State.READ)),
            self.first.eq(burst.p.first),
            self.length.eq(burst.p.length),
            burst.ready.eq(self.granted & self.write),
        ]
        with m.If(self.granted):
            m.d.sync += state.eq(Mux(self.write, _State.NEW, _State.READING))
        with m.If(self.arrived & self.old_last):
            m.d.sync += state.eq(_State.READ)
        self._give(m)
        return m

    def _found(self, m: Module) -> Any:
        """Find the partial beats of bursts that enter; return a stream with one entry per burst."""
        beat = range(self._block)
        found = data.StructLayout({"partial": 1, "first": beat, "length": beat})
        m.submodules.bursts = bursts = Fifo(found, 2 * self._block)
        partial = ~self.strobe.all()
        seen = Signal()
        # Beats before the first partial one, and from there to the last one.
        index, before, length, since = (Signal(beat) for _ in range(4))
        m.d.comb += [
            self.marked.eq(seen | partial),
            bursts.i.valid.eq(self.enters & self.last),
            bursts.i.p.partial.eq(self.marked),
            bursts.i.p.first.eq(Mux(seen, before, index)),
            bursts.i.p.length.eq(Mux(partial, since, length)),
        ]
        with m.If(self.enters):
            m.d.sync += index.eq(index + 1)
            with m.If(self.marked):
                m.d.sync += [seen.eq(1), since.eq(since + 1)]
            with m.If(partial):
                m.d.sync += [length.eq(since), before.eq(bursts.i.p.first)]
            with m.If(self.last):
                m.d.sync += [index.eq(0), seen.eq(0), since.eq(0), length.eq(0)]
        return bursts.o

    def _give(self, m: Module) -> None:
        """Queue the beats that were read, and give one to each marked beat that is written.

        No beat of the next burst arrives before: the chip executes its commands in order.
        """
        m.submodules.old = fifo = Fifo(self._width, self._block)
        m.d.comb += [
            fifo.i.valid.eq(self.arrived),
            fifo.i.payload.eq(self.old),
            fifo.o.ready.eq(self.begins & self.is_marked),
            self.o.eq(fifo.o.payload),
        ]
