"""Elements of two beats each, for circuits whose beat is half as wide as the widest lane.

`PairBeats` puts both beats of a pair side by side before the shifter, `SplitBeats` separates the
result again, and `AddPairs` adds the counts of both beats. They must not change a beat that does
not belong to a pair.
"""

from collections.abc import Collection

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Op
from ..streams import Edge, Operands, Operation, Result
from .op_decode import decode

__all__ = ["AddPairs", "PairBeats", "PairedOperands", "PairedResult", "SplitBeats"]


class PairedOperands(data.StructLayout):
    """Both beats of a pair if ``pair``, else one beat in the upper half; the lower is undefined."""

    def __init__(self, data_width: int) -> None:
        super().__init__(
            {
                "a": 2 * data_width,
                "b": 2 * data_width,
                "inside": data_width // 8,
                "operation": Operation,
                "edge": Edge,
                "pair": 1,
            }
        )


class PairedResult(data.StructLayout):
    """Both results of a pair if ``pair``, else one result in the upper half."""

    def __init__(self, data_width: int) -> None:
        super().__init__(
            {
                "data": 2 * data_width,
                "lane": 2,
                "out_lane": 2,
                "partial": 1,
                "edge": Edge,
                "pair": 1,
            }
        )


class PairBeats(wiring.Component):
    """Joins two beats that form a pair: holds the first, the low half, until the second arrives.

    The beats of a shift in 64-bit lanes form pairs; a run of them consists of whole pairs. A beat
    in error never waits as the first of a pair: it passes alone, because the second may never
    arrive.

    Latency: 0 cycles from the second beat of a pair and from any other. Throughput: one input beat
    a cycle.

    Parameters
    ----------
    data_width, ops
        Bits of a beat, and the operations that are sent.

    Members
    -------
    i
        Beats.
    o
        Pairs and single beats. The edge of a pair is that of its second beat, but ``error`` is 1 if
        either beat is in error.
    """

    def __init__(self, data_width: int, ops: Collection[Op]) -> None:
        self._ops = ops
        super().__init__(
            {
                "i": In(stream.Signature(Operands(data_width))),
                "o": Out(stream.Signature(PairedOperands(data_width))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.payload, self.o.payload
        second = Signal()
        held_a, held_b = Signal(len(i.a), reset_less=True), Signal(len(i.b), reset_less=True)
        held_error = Signal(reset_less=True)
        pair = decode(i.operation.op, self._ops).shifts & (i.operation.lane == Lane.BITS_64)
        m.d.comb += [
            o.a.eq(Cat(held_a, i.a)),
            o.b.eq(Cat(held_b, i.b)),
            o.inside.eq(i.inside),
            o.operation.eq(i.operation),
            o.edge.eq(i.edge),
            o.edge.error.eq(i.edge.error | (second & held_error)),
            o.pair.eq(pair & second),
            self.o.valid.eq(self.i.valid & (second | ~pair | i.edge.error)),
            self.i.ready.eq(self.o.ready),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                held_a.eq(i.a),
                held_b.eq(i.b),
                held_error.eq(i.edge.error),
                second.eq(pair & ~second & ~i.edge.error),
            ]
        return m


class SplitBeats(wiring.Component):
    """Sends both results of a pair one after the other, the lower half first.

    Latency: 0 cycles. Throughput: one output beat a cycle.

    Members
    -------
    i
        Pairs and single results.
    o
        Both results have the edge of the pair, but only the second has ``last`` and ``end``.
    """

    def __init__(self, data_width: int) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(PairedResult(data_width))),
                "o": Out(stream.Signature(Result(data_width))),
            }
        )
        self._data_width = data_width

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.payload, self.o.payload
        second = Signal()
        first = Signal()
        lower, upper = i.data[: self._data_width], i.data[self._data_width :]
        m.d.comb += [
            first.eq(i.pair & ~second),
            o.data.eq(Mux(first, lower, upper)),
            o.lane.eq(i.lane),
            o.out_lane.eq(i.out_lane),
            o.partial.eq(i.partial),
            o.edge.eq(i.edge),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & ~first),
        ]
        with m.If(first):
            m.d.comb += [o.edge.last.eq(0), o.edge.end.eq(0)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += second.eq(first)
        return m


class AddPairs(wiring.Component):
    """Adds the counts of both beats of a pair.

    The counts of 64-bit lanes form pairs: their output lane differs from their lane. A run of them
    consists of whole pairs. The first of a pair is sent as ``partial``, unless it is in error,
    because then no second may follow. The second has the sum, the lane of 32 bits, and ``error`` if
    either is in error. Its ``slot`` is halved, because half as many results fill the part of the
    first output beat that precedes the run.

    Latency: 0 cycles. Throughput: a beat a cycle.
    """

    i: In(stream.Signature(Result(32)))
    """Counts of single beats, and all other results."""
    o: Out(stream.Signature(Result(32)))
    """The same; all but the counts of pairs are unchanged."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.payload, self.o.payload
        pair, first, second = Signal(), Signal(), Signal()
        # Both are 0 except at the second beat of a pair, so that no other beat changes.
        held_count, held_error = Signal(6), Signal()
        m.d.comb += [
            pair.eq((i.lane == Lane.BITS_64) & (i.out_lane != Lane.BITS_64)),
            first.eq(pair & ~second & ~i.edge.error),
            o.eq(i),
            o.data.eq(Cat((i.data[:7] + held_count)[:7], i.data[7:])),
            o.edge.error.eq(i.edge.error | held_error),
            o.partial.eq(first | i.partial),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
        ]
        with m.If(pair):
            m.d.comb += [o.lane.eq(Lane.BITS_32), o.edge.slot.eq(i.edge.slot[1:])]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                second.eq(first),
                held_count.eq(Mux(first, i.data[:6], 0)),
                held_error.eq(first & i.edge.error),
            ]
        return m
