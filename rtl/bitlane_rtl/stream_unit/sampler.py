"""Samples and decodes the control inputs at the first beat of each packet. It alone refuses."""

from collections.abc import Collection
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import BIT_OPS, COUNT_OPS, Lane, Op
from ..stream_configuration import PacketReduction, StreamConfiguration
from .packets import InputBeat, PacketControl, Sampled, SampledBeat

__all__ = ["ControlSampler"]


class ControlSampler(wiring.Component):
    """Gives each beat of A the operation that was at the inputs at the packet's first handshake.

    Members
    -------
    control
        Sampled in the cycle of the handshake of a packet's first beat.
    i
        Beats of A.
    o
        Beats of A, each with its operation.

    A packet is refused, and its results are null, if

    - the operation, or the lane of an operation that depends on it, was not built,
    - ``reduction`` is not NONE and the operation does not count, or is 3,
    - ``out_lane`` of a count is wider than ``lane``, or neither 8 nor 32 bits nor ``lane``,
    - ``test`` is 1 and the operation does not count, or ``reduction`` is ANY,
    - ``negate`` is 1, ``test`` is 0 and ``reduction`` is not ANY.

    A sum without ``test``, and ANY, do not depend on ``lane``. A refused packet takes a packet of B
    if its operation has two operands.

    Latency: 0 cycles. Throughput: a beat a cycle.
    """

    def __init__(self, configuration: StreamConfiguration) -> None:
        self._configuration = configuration
        beat = InputBeat(configuration.data_width, configuration.user_width)
        super().__init__(
            {
                "control": In(PacketControl(configuration)),
                "i": In(stream.Signature(beat)),
                "o": Out(stream.Signature(SampledBeat(configuration))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = Signal(init=1)
        held: Any = Signal(Sampled, reset_less=True)
        now: Any = Signal(Sampled)
        self._decode(m, now)
        m.d.comb += [
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
            self.o.p.beat.eq(self.i.p),
            self.o.p.sampled.eq(Mux(first, now.as_value(), held.as_value())),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [first.eq(self.i.p.last), held.eq(self.o.p.sampled)]
        return m

    def _decode(self, m: Module, now: Any) -> None:
        """Drive ``now`` with what the control inputs ask for."""
        config, control = self._configuration, self.control
        op = control.op if len(config.ops) > 1 else Const(next(iter(config.ops)), 4)
        lane, out_lane = (_or_zero(x, 2) for x in (control.lane, control.out_lane))
        test, negate = (_or_zero(x, 1) for x in (control.test, control.negate))
        reduction = _or_zero(control.reduction, 2)
        counts, splits, reduces, refused = (Signal(name=x) for x in _NAMES)
        bytewise = reduces & ~test
        narrow_wrong = (out_lane > lane) | ((out_lane != lane) & out_lane[0])
        truth = reduction == PacketReduction.ANY
        m.d.comb += [
            counts.eq(_is_in(op, config.ops & COUNT_OPS)),
            splits.eq(_is_in(op, {each for each in config.ops if each.splits_lanes})),
            reduces.eq(reduction != PacketReduction.NONE),
            refused.eq(
                ~_is_in(op, config.ops)
                | (splits & ~bytewise & ~_is_in(lane, config.lanes))
                | (reduces & (~counts | (reduction == 3)))
                | (counts & ~reduces & narrow_wrong)
                | (test & (~counts | truth))
                | (negate & ~test & ~truth)
            ),
            now.operation.op.eq(op),
            now.operation.lane.eq(lane),
            now.operation.out_lane.eq(Mux(counts & ~refused, out_lane, lane)),
            now.operation.saturate.eq(_or_zero(control.saturate, 1)),
            now.operation.arithmetic.eq(_or_zero(control.arithmetic, 1)),
            now.operation.sums.eq(reduces & ~refused),
            now.operation.test.eq(test),
            now.operation.negate.eq(negate),
            now.reads_b.eq(_is_in(op, {each for each in BIT_OPS if each.reads_b})),
            now.splits.eq(splits & ~bytewise & ~refused),
            now.truth.eq(truth),
            now.refused.eq(refused),
        ]
        with m.If(now.operation.sums):
            m.d.comb += now.operation.out_lane.eq(Lane.BITS_32)


_NAMES = ("counts", "splits", "reduces", "refused")


def _or_zero(field: Value, width: int) -> Value:
    """Return ``field``, or ``width`` zeros for a field that was not built."""
    return field if len(field) else Const(0, width)


def _is_in(code: Value, codes: Collection[Op | Lane]) -> Value:
    """Return whether ``code`` is one of ``codes``: a table of one LUT4."""
    table = Const(sum(1 << each for each in codes), 1 << len(code))
    return table.bit_select(code, 1)
