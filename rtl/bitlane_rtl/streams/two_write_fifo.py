"""A FIFO with two write ports."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .fifo import Fifo
from .register_slices import SkidBuffer

__all__ = ["TwoWriteFifo"]


class TwoWriteFifo(wiring.Component):
    """A FIFO with two write ports, controlled by credit: it never refuses a payload.

    It consists of two FIFOs, which are written and read alternately.

    Parameters
    ----------
    shape
        Shape of a payload; may be a data layout.
    depth
        Payloads that it holds: a power of two, 8 or more.

    Members
    -------
    i
        The write ports. Payloads must enter them alternately, from ``i[0]`` on; of two that enter
        in a cycle, the first enters at the next port of this order.
    o
        ``valid`` and ``payload`` come from registers, and ``ready`` reaches registers only.

    Latency: 2 cycles. Throughput: 2 payloads in, 1 payload out a cycle.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: that of a `Fifo` of LUT RAM, whose output also needs a multiplexer of two halves, and of a
    `SkidBuffer`.

    Raises ``ValueError`` if ``depth`` is not a power of two, or is less than 8.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        if depth < 8 or depth & (depth - 1):
            raise ValueError(f"depth: {depth} is not a power of two, 8 or more")
        self._shape = shape
        super().__init__(
            {
                "i": In(stream.Signature(shape, always_ready=True)).array(2),
                "o": Out(stream.Signature(shape)),
            }
        )
        self._fifos = [Fifo(shape, depth // 2, credit=True) for _ in self.i]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.front = front = SkidBuffer(self._shape)
        wiring.connect(m, front.o, wiring.flipped(self.o))
        turn = Signal()
        taken = front.i.valid & front.i.ready
        m.d.sync += turn.eq(turn ^ taken)
        first, second = self._fifos
        m.d.comb += [
            front.i.valid.eq(Mux(turn, second.o.valid, first.o.valid)),
            front.i.payload.eq(Mux(turn, second.o.payload, first.o.payload)),
        ]
        for number, (port, fifo) in enumerate(zip(self.i, self._fifos, strict=True)):
            m.submodules[f"fifo_{number}"] = fifo
            m.d.comb += [
                fifo.i.valid.eq(port.valid),
                fifo.i.payload.eq(port.payload),
                fifo.o.ready.eq(front.i.ready & (turn == number)),
            ]
        return m
