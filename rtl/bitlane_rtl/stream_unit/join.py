"""Joins the packets of A and B beat by beat, and finds what is wrong with them."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane
from ..bit_unit import any_in_lane
from ..stream_configuration import StreamConfiguration
from .packets import InputBeat, JoinedBeat, SampledBeat

__all__ = ["PacketJoin"]


class PacketJoin(wiring.Component):
    """Sends each beat of A together with its beat of B, and the end of the shorter packet.

    `datapath.pairing` cannot do this: it counts down the bytes of a run, and a packet has no length
    before its last beat.

    The packet that it sends ends with the shorter one. Further beats of the longer one are dropped,
    one per cycle; meanwhile a packet that does not need that operand can pass.

    Members
    -------
    a
        Beats of A, each with its operation.
    b
        Only if an operation has two operands.
    o
        ``keep``: the bytes that have a result; for a count the bytes of its element.

    Latency: 0 cycles. Throughput: a beat a cycle.
    Bound of the clock: ``valid`` of both, and ``ready`` -> ``ready`` of both.
    """

    def __init__(self, configuration: StreamConfiguration) -> None:
        self._configuration = configuration
        operand = In(stream.Signature(InputBeat(configuration.data_width, 0)))
        super().__init__(
            {
                "a": In(stream.Signature(SampledBeat(configuration))),
                **({"b": operand} if configuration.has_b else {}),
                "o": Out(stream.Signature(JoinedBeat(configuration))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, sampled, o = self.a.p.beat, self.a.p.sampled, self.o.p
        sent, last = Signal(), Signal()
        common = Signal(len(a.keep))
        unequal: Value = Const(0)
        m.d.comb += [
            sent.eq(self.o.valid & self.o.ready),
            common.eq(a.keep),
            last.eq(a.last),
            self.o.valid.eq(self.a.valid),
            self.a.ready.eq(sent),
        ]
        if self._configuration.has_b:
            unequal = self._pair(m, sent, common, last)
        kept = self._whole(m, common, sampled)
        gaps = (common[1:] & ~common[:-1]).any() if len(common) > 1 else Const(0)
        m.d.comb += [
            o.operands.a.eq(a.data),
            o.operands.inside.eq(Mux(sampled.operation.sums, kept, -1)),
            o.operands.operation.eq(sampled.operation),
            o.operands.edge.last.eq(last),
            o.operands.edge.end.eq(last),
            o.sideband.keep.eq(Mux(sampled.refused, 0, kept)),
            o.sideband.last.eq(last),
            o.sideband.user.eq(a.user),
            o.sideband.refused.eq(sampled.refused),
            o.sideband.unequal.eq(unequal),
            o.sideband.holes.eq(gaps | (~last & ~common.all()) | self._cut(common, sampled)),
            o.sideband.some.eq(common.any()),
            o.sideband.sums.eq(sampled.operation.sums),
            o.sideband.truth.eq(sampled.truth),
            o.sideband.negate.eq(sampled.operation.negate),
        ]
        return m

    def _pair(self, m: Module, sent: Signal, common: Signal, last: Signal) -> Value:
        """Join the beats of A and B. Return whether one of the packets is shorter."""
        a, b, needed = self.a.p.beat, self.b.p, self.a.p.sampled.reads_b
        drop_a, drop_b = Signal(), Signal()
        m.d.comb += [
            common.eq(a.keep & (b.keep | (~needed).replicate(len(b.keep)))),
            last.eq(a.last | (needed & b.last)),
            self.o.p.operands.b.eq(b.data),
            self.o.valid.eq(self.a.valid & ~drop_a & (~needed | (self.b.valid & ~drop_b))),
            self.a.ready.eq(sent | drop_a),
            self.b.ready.eq((sent & needed) | drop_b),
        ]
        with m.If(sent):
            m.d.sync += drop_a.eq(needed & b.last & ~a.last)
        with m.Elif(self.a.valid & a.last):
            m.d.sync += drop_a.eq(0)
        with m.If(sent & needed):
            m.d.sync += drop_b.eq(a.last & ~b.last)
        with m.Elif(self.b.valid & b.last):
            m.d.sync += drop_b.eq(0)
        return needed & ((a.last != b.last) | (a.keep != b.keep))

    def _cut(self, common: Signal, sampled: Any) -> Value:
        """Return whether the packet ends within an element, if it has no gaps."""
        cut: Value = Const(0)
        for lane in self._configuration.lanes - {Lane.BITS_8}:
            ends = range(lane.bytes - 1, len(common), lane.bytes)
            found = Cat(common[end - lane.bytes + 1] & ~common[end] for end in ends).any()
            cut |= found & (sampled.operation.lane == lane)
        return cut & sampled.splits

    def _whole(self, m: Module, common: Signal, sampled: Any) -> Value:
        """Return the bytes with a result: of elements, if they matter, those that are whole."""
        lanes = self._configuration.lanes
        if not lanes:
            return common
        lane = Mux(sampled.splits, sampled.operation.lane, Lane.BITS_8)
        return ~any_in_lane(m, ~common, lane, lanes | {Lane.BITS_8}, tuple(Lane))
