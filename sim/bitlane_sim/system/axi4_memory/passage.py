"""A queue that lets its input through in the same cycle while it is empty."""

from typing import Any

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

__all__ = ["Passage"]


class Passage(wiring.Component):
    """Keeps payloads in order until they are taken.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        ``ready`` depends on the number of waiting payloads alone.
    o : ``Out(stream.Signature(shape))``
        ``valid`` and ``payload`` depend on ``i`` while nothing waits.

    Latency: 0 cycles while nothing waits. Throughput: one payload a cycle. Holds ``depth``
    payloads.
    """

    i: Any
    o: Any

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self._shape = shape
        self._depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        payload: Any = Signal(self._shape)
        width = len(payload.as_value())
        m.submodules.fifo = fifo = SyncFIFO(width=width, depth=self._depth)
        m.d.comb += [
            payload.as_value().eq(Mux(fifo.r_rdy, fifo.r_data, self.i.payload.as_value())),
            self.i.ready.eq(fifo.w_rdy),
            self.o.payload.eq(payload),
            self.o.valid.eq(fifo.r_rdy | (self.i.valid & fifo.w_rdy)),
            fifo.r_en.eq(self.o.ready),
            fifo.w_data.eq(self.i.payload.as_value()),
            fifo.w_en.eq(self.i.valid & (fifo.r_rdy | ~self.o.ready)),
        ]
        return m
