"""A queue that two payloads can enter in a cycle. Loses, doubles, reorders and alters none."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .fifo import Queue
from .register_slices import Skid

__all__ = ["Twin"]


class Twin(wiring.Component):
    """Two queues that are filled and emptied in turn, as one.

    Parameters
    ----------
    shape
        Shape of a payload; may be a data layout.
    depth
        Payloads that it holds: a power of two, 8 or more. The owner sees to it that there is room.

    Members
    -------
    i : ``In(stream.Signature(shape, always_ready=True)).array(2)``
        Payloads come here and there in turn, from ``i[0]`` on, and so at most one more here than
        there: of two that come in a cycle the first comes where it is due.
    o : ``Out(stream.Signature(shape))``
        ``valid`` and ``payload`` come from registers, and ``ready`` ends there.

    Latency: 2 cycles. Throughput: 2 payloads in, 1 payload out a cycle.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area: that of a `Queue` of LUT RAM, which has the multiplexer of two halves too, and a `Skid`.

    Raises ``ValueError`` if ``depth`` is not a power of two, or is less than 8.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        if depth < 8 or depth & (depth - 1):
            raise ValueError(f"depth: {depth} is no power of two, 8 or more")
        self._shape = shape
        super().__init__(
            {
                "i": In(stream.Signature(shape, always_ready=True)).array(2),
                "o": Out(stream.Signature(shape)),
            }
        )
        self._queues = [Queue(shape, depth // 2, credit=True) for _ in self.i]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.front = front = Skid(self._shape)
        wiring.connect(m, front.o, wiring.flipped(self.o))
        turn = Signal()
        taken = front.i.valid & front.i.ready
        m.d.sync += turn.eq(turn ^ taken)
        first, second = self._queues
        m.d.comb += [
            front.i.valid.eq(Mux(turn, second.o.valid, first.o.valid)),
            front.i.payload.eq(Mux(turn, second.o.payload, first.o.payload)),
        ]
        for number, (entrance, queue) in enumerate(zip(self.i, self._queues, strict=True)):
            m.submodules[f"queue_{number}"] = queue
            m.d.comb += [
                queue.i.valid.eq(entrance.valid),
                queue.i.payload.eq(entrance.payload),
                queue.o.ready.eq(front.i.ready & (turn == number)),
            ]
        return m
