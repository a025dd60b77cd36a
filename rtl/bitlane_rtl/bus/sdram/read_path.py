"""Assembles words from the chip into beats and routes each beat to its requester."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...abi import BEATS_PER_BLOCK
from ...ports.signatures import read_data
from ...sdram_part import SdramTiming
from ...streams import Fifo
from .burst import ChipLayout, Requester

__all__ = ["ReadPath"]

_DEPTH = 2 * BEATS_PER_BLOCK


class _Mark(data.Struct):
    """Sideband of a READ, delayed until its last word arrives."""

    valid: 1
    requester: Requester
    last: 1


class ReadPath(wiring.Component):
    """The read data path: assembles words into beats and buffers them.

    Parameters
    ----------
    layout, timing
        See `ChipLayout` and `SdramTiming`.
    readers
        Number of read ports, 1 or 2.

    Members
    -------
    word
        The data lines, sampled by a register.
    begins
        A READ is issued in this cycle.
    requester, last
        The READ's requester, and 1 if the READ is the last of its burst.
    granted
        A burst of A or B is granted. Allowed only while ``room``, and not in consecutive cycles.
    length
        Beats of the granted burst, less one; valid in the cycle after ``granted``.
    room
        The FIFO has space for a burst of any length.
    data
        Beats of the bursts, one stream per reader.
    write
        ``beat`` is a partial beat for the write path, and valid in this cycle.
    beat, beat_last
        The beat, and whether it is the last of its burst.

    Latency: a beat is at its port ``cas + words + 4`` cycles after its READ.
    Throughput: a word a cycle, if readers accept a beat in as many cycles as it has words. Each
    reader must accept its beats without waiting for the other.
    """

    def __init__(self, layout: ChipLayout, timing: SdramTiming, readers: int) -> None:
        self._layout = layout
        self._timing = timing
        width = layout.data_width
        port = stream.Signature(read_data(width))
        super().__init__(
            {
                "word": In(layout.part.width),
                "begins": In(1),
                "requester": In(Requester),
                "last": In(1),
                "granted": In(1),
                "length": In(layout.beat_bits),
                "room": Out(1),
                "data": Out(port).array(readers),
                "write": Out(1),
                "beat": Out(width),
                "beat_last": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = self._layout
        # Two registers delay a READ to the pins; one more delays a word from the pins.
        marks: list[Any] = [
            Signal(_Mark, name=f"mark_{age}") for age in range(self._timing.cas + layout.words + 2)
        ]
        m.d.sync += [
            marks[0].valid.eq(self.begins),
            marks[0].requester.eq(self.requester),
            marks[0].last.eq(self.last),
            *(after.eq(before) for before, after in pairwise(marks)),
        ]
        early = Signal(layout.data_width - layout.part.width, reset_less=True)
        m.d.sync += early.eq(Cat(early, self.word)[layout.part.width :])
        arrived = marks[-1]
        # Only a part without masks has reads of the write path.
        of_write = (arrived.requester == Requester.WRITE) & (not layout.part.masks)
        m.d.comb += [
            self.beat.eq(Cat(early, self.word)),
            self.beat_last.eq(arrived.last),
            self.write.eq(arrived.valid & of_write),
        ]
        beat = data.StructLayout({"data": layout.data_width, "last": 1, "to_b": 1})
        m.submodules.beats = beats = Fifo(beat, _DEPTH, credit=True, registered=True)
        m.d.comb += [
            beats.i.valid.eq(arrived.valid & ~of_write),
            beats.i.p.data.eq(self.beat),
            beats.i.p.last.eq(arrived.last),
            beats.i.p.to_b.eq(arrived.requester == Requester.B),
        ]
        self._route(m, beats.o)
        self._count(m, beats.o)
        return m

    def _route(self, m: Module, beat: Any) -> None:
        for index, port in enumerate(self.data):
            selected = beat.p.to_b == index
            m.d.comb += [
                port.valid.eq(beat.valid & selected),
                port.p.data.eq(beat.p.data),
                port.p.last.eq(beat.p.last),
                port.p.error.eq(0),
            ]
            with m.If(selected):
                m.d.comb += beat.ready.eq(port.ready)

    def _count(self, m: Module, beat: Any) -> None:
        """Count the beats that are in flight or in the FIFO; ``room`` leaves space for a burst."""
        due = Signal(range(_DEPTH + 1))
        left = Signal()
        granted = Signal()
        m.d.sync += [
            left.eq(beat.valid & beat.ready),
            granted.eq(self.granted),
            due.eq(due + Mux(granted, self.length + 1, 0) - left),
        ]
        m.d.comb += self.room.eq(due <= _DEPTH - BEATS_PER_BLOCK)
