"""Buffers bursts to write until they are complete, and splits their beats into words."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...abi import BEATS_PER_BLOCK
from ...ports.signatures import write_data
from ...streams import Fifo, ForwardRegister
from .burst import ChipLayout
from .partial_beats import PartialBeats, replaced

__all__ = ["WritePath"]

_DEPTH = 2 * BEATS_PER_BLOCK

_OWED = 8
"""Highest number of responses that may wait."""


class WritePath(wiring.Component):
    """The write data path: buffers bursts and splits beats into words.

    Of a chip without masks, the partial beats of a burst are read before it is written: see
    `PartialBeats`.

    Members
    -------
    data
        Beats of the bursts, in order.
    response
        One response per burst, in order.
    whole
        The next burst may be requested: all its beats are in the FIFO, and its response has space.
    write
        1 to write the next burst, 0 to read its partial beats. Always 1 with masks.
    first, length
        What to read of it: the first beat, and the number of beats less one.
    granted
        The arbiter grants that burst in this cycle. Allowed only while ``whole``.
    arrived, beat, arrived_last
        A partial beat arrives, the last one that was requested.
    begins
        A WRITE is issued in this cycle.
    last
        The WRITE is the last of its burst.
    word, mask
        Values for the pins' registers. ``mask`` is 1 for bytes that are not written.

    Latency: the words of a beat follow each other, the first in the cycle of ``begins``. A response
    arrives 2 cycles after its burst's last WRITE. Throughput: a word a cycle.
    """

    def __init__(self, layout: ChipLayout) -> None:
        self._layout = layout
        width, part = layout.data_width, layout.part
        super().__init__(
            {
                "data": In(stream.Signature(write_data(width))),
                "response": Out(stream.Signature(1)),
                "whole": Out(1),
                "write": Out(1),
                "first": Out(layout.beat_bits),
                "length": Out(layout.beat_bits),
                "granted": In(1),
                "arrived": In(1),
                "beat": In(width),
                "arrived_last": In(1),
                "begins": In(1),
                "last": In(1),
                "word": Out(part.width),
                "mask": Out(part.width // 8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        complete, beat = (self._buffer if self._layout.part.masks else self._merge)(m)
        owed = Signal(range(_OWED + 1))
        responded, ended = Signal(), Signal()
        # Two granted bursts may still be in flight, and one more may be granted.
        m.d.comb += [
            self.response.valid.eq(owed != 0),
            self.response.payload.eq(0),
            responded.eq(self.response.valid & self.response.ready),
            self.whole.eq(complete & (owed <= _OWED - 4)),
        ]
        m.d.sync += [
            ended.eq(self.begins & self.last),
            owed.eq(owed + ended - responded),
        ]
        self._cut(m, beat)
        return m

    def _buffer(self, m: Module) -> tuple[Value, Any]:
        """Buffer beats whose partial words the chip masks.

        Returns whether a burst is complete, and the beat to write.
        """
        m.submodules.beats = beats = Fifo(write_data(self._layout.data_width), _DEPTH)
        wiring.connect(m, wiring.flipped(self.data), beats.i)
        entered = self.data.valid & self.data.ready & self.data.p.last
        # The FIFO holds at most this many bursts, because a burst has one beat or more.
        bursts = Signal(range(_DEPTH + 1))
        m.d.sync += bursts.eq(bursts + entered - self.granted)
        m.d.comb += [self.write.eq(1), beats.o.ready.eq(self.begins)]
        return bursts != 0, beats.o.p

    def _merge(self, m: Module) -> tuple[Value, Any]:
        """Buffer beats, and replace bytes of those that were read. Returns the same."""
        width = self._layout.data_width
        stored = data.StructLayout({"beat": write_data(width), "marked": 1})
        m.submodules.beats = beats = Fifo(stored, _DEPTH)
        m.submodules.partial = partial = PartialBeats(width)
        # Strobes come from two writers through an arbiter, and decide what the FIFO stores.
        m.submodules.entering = entering = ForwardRegister(write_data(width))
        wiring.connect(m, wiring.flipped(self.data), entering.i)
        taken = entering.o
        whole = Signal(write_data(width))
        m.d.comb += [
            beats.i.valid.eq(taken.valid),
            beats.i.p.beat.eq(taken.payload),
            beats.i.p.marked.eq(partial.marked),
            taken.ready.eq(beats.i.ready),
            beats.o.ready.eq(self.begins),
            partial.enters.eq(taken.valid & taken.ready),
            partial.strobe.eq(taken.p.strobe),
            partial.last.eq(taken.p.last),
            self.write.eq(partial.write),
            self.first.eq(partial.first),
            self.length.eq(partial.length),
            partial.granted.eq(self.granted),
            partial.arrived.eq(self.arrived),
            partial.old.eq(self.beat),
            partial.old_last.eq(self.arrived_last),
            partial.begins.eq(beats.o.ready),
            partial.is_marked.eq(beats.o.p.marked),
            whole.eq(beats.o.p.beat),
            whole.data.eq(replaced(partial.o, beats.o.p.beat.data, beats.o.p.beat.strobe)),
        ]
        return partial.whole, whole

    def _cut(self, m: Module, beat: Any) -> None:
        part, width = self._layout.part, self._layout.data_width
        masks = ~beat.strobe
        rest = Signal(width - part.width, reset_less=True)
        rest_masks = Signal(len(masks) - part.width // 8)
        now, now_masks = Signal(width), Signal(width // 8)
        m.d.comb += [
            now.eq(Mux(self.begins, beat.data, rest)),
            now_masks.eq(Mux(self.begins, masks, rest_masks)),
            self.word.eq(now),
            self.mask.eq(now_masks),
        ]
        m.d.sync += [
            rest.eq(now[part.width :]),
            rest_masks.eq(now_masks[part.width // 8 :]),
        ]
