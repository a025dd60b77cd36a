"""Gathers the words that the chip sends into beats, and gives them to whom asked for them."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...abi import BEATS_PER_BLOCK
from ...ports.memory_port import read_data
from ...streams.queue import Queue
from .burst import ChipLayout, Requester
from .part import SdramTiming

__all__ = ["Reading"]

_DEPTH = 2 * BEATS_PER_BLOCK


class _Mark(data.Struct):
    """What goes beside a READ until its last word has come."""

    valid: 1
    requester: Requester
    last: 1


class Reading(wiring.Component):
    """From words to beats.

    Members
    -------
    word : ``In(width)``
        The data lines, as a register took them.
    begins : ``In(1)``
        A READ is given, in this cycle.
    requester, last : ``In(Requester)``, ``In(1)``
        Whose burst the READ is of, and whether it is the burst's last.
    picked : ``In(1)``
        A burst will be read for A or B; only while ``room``, and not in two cycles in turn.
    length : ``In(range(BEATS_PER_BLOCK))``
        Its beats less one, in the cycle after.
    room : ``Out(1)``
        There is room for a burst of any length.
    data : ``Out(stream.Signature(read_data(data_width)))``, one for each reader
    host : ``Out(1)``
        The host's beat has come: ``beat``, in this cycle.
    beat : ``Out(data_width)``

    Latency: a beat is at its port ``cas + words + 4`` cycles after its READ.
    Throughput: a word a cycle, if readers take a beat in as many cycles as it has words. Each must
    take its beats without waiting for the other's.
    """

    def __init__(self, layout: ChipLayout, timing: SdramTiming, readers: int) -> None:
        self._layout = layout
        self._timing = timing
        self._readers = readers
        width = layout.data_width
        port = stream.Signature(read_data(width))
        super().__init__(
            {
                "word": In(layout.part.width),
                "begins": In(1),
                "requester": In(Requester),
                "last": In(1),
                "picked": In(1),
                "length": In(layout.beat_bits),
                "room": Out(1),
                "data": Out(port).array(readers),
                "host": Out(1),
                "beat": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = self._layout
        # A READ is at the pins two cycles late, and a word in its register a cycle after the pins.
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
        of_host = arrived.requester == Requester.HOST
        m.d.comb += [
            self.beat.eq(Cat(early, self.word)),
            self.host.eq(arrived.valid & of_host),
        ]
        beat = data.StructLayout({"data": layout.data_width, "last": 1, "to_b": 1})
        m.submodules.beats = beats = Queue(beat, _DEPTH, credit=True, registered=True)
        m.d.comb += [
            beats.i.valid.eq(arrived.valid & ~of_host),
            beats.i.p.data.eq(self.beat),
            beats.i.p.last.eq(arrived.last),
            beats.i.p.to_b.eq(arrived.requester == Requester.B),
        ]
        self._give(m, beats.o)
        self._count(m, beats.o)
        return m

    def _give(self, m: Module, beat: Any) -> None:
        for index, port in enumerate(self.data):
            mine = beat.p.to_b == index
            m.d.comb += [
                port.valid.eq(beat.valid & mine),
                port.p.data.eq(beat.p.data),
                port.p.last.eq(beat.p.last),
                port.p.error.eq(0),
            ]
            with m.If(mine):
                m.d.comb += beat.ready.eq(port.ready)

    def _count(self, m: Module, beat: Any) -> None:
        """Beats that are due or in the queue; a burst is only read if all of it has a place."""
        due = Signal(range(_DEPTH + 1))
        left = Signal()
        picked = Signal()
        m.d.sync += [
            left.eq(beat.valid & beat.ready),
            picked.eq(self.picked),
            due.eq(due + Mux(picked, self.length + 1, 0) - left),
        ]
        m.d.comb += self.room.eq(due <= _DEPTH - BEATS_PER_BLOCK)
