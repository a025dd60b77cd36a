"""Buffers bursts to write until they are complete, and splits their beats into words."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...abi import BEATS_PER_BLOCK
from ...ports.signatures import write_data
from ...streams.fifo import Fifo
from .burst import ChipLayout

__all__ = ["WritePath"]

_OWED = 8
"""Highest number of responses that may wait."""


class WritePath(wiring.Component):
    """The write data path: buffers bursts and splits beats into words.

    Members
    -------
    data : ``In(stream.Signature(write_data(data_width)))``
    response : ``Out(stream.Signature(1))``
    whole : ``Out(1)``
        All beats of the next burst are in the FIFO, and its response has space.
    granted : ``In(1)``
        The arbiter grants that burst in this cycle. Allowed only while ``whole``.
    begins : ``In(1)``
        A WRITE is issued in this cycle.
    last : ``In(1)``
        The WRITE is the last of its burst.
    host : ``In(1)``
        The WRITE is the host's.
    host_data, host_strobe : ``In(data_width)``, ``In(data_width // 8)``
        The host's beat to write.
    word, mask : ``Out(width)``, ``Out(width // 8)``
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
                "granted": In(1),
                "begins": In(1),
                "last": In(1),
                "host": In(1),
                "host_data": In(width),
                "host_strobe": In(width // 8),
                "word": Out(part.width),
                "mask": Out(part.width // 8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = self._layout.data_width
        m.submodules.beats = beats = Fifo(write_data(width), 2 * BEATS_PER_BLOCK)
        wiring.connect(m, wiring.flipped(self.data), beats.i)
        entered = self.data.valid & self.data.ready & self.data.p.last
        # The FIFO holds at most this many bursts, because a burst has one beat or more.
        bursts = Signal(range(2 * BEATS_PER_BLOCK + 1))
        owed = Signal(range(_OWED + 1))
        responded = Signal()
        m.d.sync += bursts.eq(bursts + entered - self.granted)
        m.d.comb += [
            self.response.valid.eq(owed != 0),
            self.response.payload.eq(0),
            responded.eq(self.response.valid & self.response.ready),
            # Two granted bursts may still be in flight, and one more may be granted.
            self.whole.eq((bursts != 0) & (owed <= _OWED - 4)),
            beats.o.ready.eq(self.begins & ~self.host),
        ]
        ended = Signal()
        m.d.sync += [
            ended.eq(self.begins & self.last & ~self.host),
            owed.eq(owed + ended - responded),
        ]
        self._cut(m, beats.o)
        return m

    def _cut(self, m: Module, beat: Any) -> None:
        part, width = self._layout.part, self._layout.data_width
        data = Mux(self.host, self.host_data, beat.p.data)
        masks = ~Mux(self.host, self.host_strobe, beat.p.strobe)
        rest = Signal(width - part.width, reset_less=True)
        rest_masks = Signal(len(masks) - part.width // 8)
        now, now_masks = Signal(width), Signal(width // 8)
        m.d.comb += [
            now.eq(Mux(self.begins, data, rest)),
            now_masks.eq(Mux(self.begins, masks, rest_masks)),
            self.word.eq(now),
            self.mask.eq(now_masks),
        ]
        m.d.sync += [
            rest.eq(now[part.width :]),
            rest_masks.eq(now_masks[part.width // 8 :]),
        ]
