"""The stages of the bit unit: registers, the units between them, and the merge of their results.

Must never mix two beats, and never drop one.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import COUNT_OPS, SHIFT_OPS, Lane, Op
from ..primitives import register
from ..streams import Edge, Operands, Result
from .beat_pairs import PairedOperands, PairedResult
from .lane_tests import LaneTests
from .logic import Logic
from .op_decode import OpDecode, decode
from .popcount import Popcount
from .row_sum import RowSum
from .shift import Shifter

__all__ = ["Pipeline"]


class _Sideband(data.Struct):
    """The fields that move with a beat from stage to stage, beside its data."""

    lane: 2
    out_lane: 2
    edge: Edge
    pair: 1
    inverts: 1
    """The result is the inverse of the word of the logic operation."""
    sums: 1
    """The beat belongs to a run that is summed."""
    partial: 1
    """As in `Result`."""


class Pipeline(wiring.Component):
    """The stages of the bit unit, without the pairing of beats.

    ======  =====================  =========================  ========================  ==========
    Stage   Logic                  Popcount                   Shifter                   RowSum
    ======  =====================  =========================  ========================  ==========
    1       compute the word       count the ones of bytes,   decode counts and fills
                                   or test elements
    2       invert, if no shifts   add up to 32 bits          move whole bytes
    3                              add up to 64 bits          move single bits          add up
    ======  =====================  =========================  ========================  ==========

    The registers of a stage are behind its logic. Stages that no operation needs are not built; a
    single stage inverts too.

    Each unit outputs 0 for an operation of another unit, so that an OR merges the results. Where
    shifts are built, the shifter outputs all ones for an operation that inverts, so that an
    XOR merges and inverts. Multiplexers that select a result by the operation need more inputs a
    bit: 15 % more LUT4 (all operations, 32 bits, iCE40), or 10 % (logic and counts, 64 bits, ECP5).

    The last stage takes a beat when it is empty or its beat is taken. The others move together with
    the last one; if ``paired``, each of them follows the rule of the last one.

    Latency: ``latency``, 1 to 3 cycles, see `BitUnit`. Throughput: one beat a cycle.

    Members
    -------
    i
        ``PairedOperands(data_width)`` if ``paired``, else ``Operands(data_width)``.
    o
        ``PairedResult(data_width)`` if ``paired``, else ``Result(data_width)``.
    """

    def __init__(
        self, data_width: int, ops: frozenset[Op], lanes: frozenset[Lane], *, sums: bool
    ) -> None:
        self._data_width = data_width
        self._ops = ops
        self._lanes = lanes
        self._sums = sums
        # An element of two beats has a count for each beat.
        widest = max(lane for lane in Lane if lane.bits <= data_width)
        self._counted = frozenset(min(lane, widest) for lane in lanes)
        shifts, counts = bool(ops & SHIFT_OPS), bool(ops & COUNT_OPS)
        three = shifts or sums or (counts and Lane.BITS_64 in self._counted)
        self.latency = 3 if three else 2 if counts else 1
        self.paired = shifts and data_width < Lane.BITS_64.bits and Lane.BITS_64 in lanes
        """Pairs of beats are shifted, so that operands and results are twice as wide as a beat."""
        super().__init__(
            {
                "i": In(
                    stream.Signature((PairedOperands if self.paired else Operands)(data_width))
                ),
                "o": Out(stream.Signature((PairedResult if self.paired else Result)(data_width))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width, latency = self._data_width, self.latency
        op = decode(self.i.p.operation.op, self._ops)
        valid, load = self._advance(m)
        word, inverts = self._logic(m, op)
        sideband = [self._sideband(m, inverts)]
        for stage in range(latency):
            sideband.append(register(m, load[stage], sideband[-1], f"sideband_{stage + 1}"))
        counts, counts_64 = self._count(m, load, op, word)
        shifted = self._shift(m, load, op, inverts)

        result = Mux(op.is_logic, word, 0)
        if latency == 1:
            result ^= inverts.replicate(width)
        result = register(m, load[0], result, "result_1")
        if latency >= 2:
            if not self._ops & SHIFT_OPS:
                result ^= sideband[1].inverts.replicate(width)
            result = register(m, load[1], result | counts, "result_2")
        if latency == 3:
            total = self._sum(m, load[2] & valid[1], result, counts_64, sideband[2])
            result = Cat(Const(0, len(shifted) - width), result | counts_64) ^ shifted
            result = register(m, load[2], Mux(sideband[2].sums, 0, result), "result_3")
            result |= total.replicate(len(result) // len(total))
        m.d.comb += [
            self.o.p.data.eq(result),
            self.o.p.lane.eq(sideband[-1].lane),
            self.o.p.out_lane.eq(sideband[-1].out_lane),
            self.o.p.partial.eq(sideband[-1].partial),
            self.o.p.edge.eq(sideband[-1].edge),
        ]
        if self.paired:
            m.d.comb += self.o.p.pair.eq(sideband[-1].pair)
        return m

    def _advance(self, m: Module) -> tuple[list[Signal], list[Signal]]:
        """Return, for each stage, whether it holds a beat and whether it takes the next one.

        All stages move at once, so that no stage depends on ``valid`` of all later ones. But pairs
        arrive at half the rate at which their halves leave, so the gaps between pairs have to
        close.
        """
        stages = range(self.latency)
        valid = [Signal(name=f"valid_{stage + 1}") for stage in stages]
        load = [Signal(name=f"load_{stage + 1}") for stage in stages]
        for stage in stages:
            last = stage == stages[-1]
            after = self.o.ready if last else load[stage + 1]
            before = valid[stage - 1] if stage else self.i.valid
            closes = self.paired or last
            m.d.comb += load[stage].eq((~valid[stage] | after) if closes else after)
            with m.If(load[stage]):
                m.d.sync += valid[stage].eq(before)
        m.d.comb += [self.i.ready.eq(load[0]), self.o.valid.eq(valid[-1])]
        return valid, load

    def _sideband(self, m: Module, inverts: Value) -> Any:
        """Return the sideband of the input."""
        i = self.i.p
        sums = i.operation.sums if self._sums else Const(0)
        fields = {
            "lane": Mux(sums, Lane.BITS_32, i.operation.lane),
            "out_lane": i.operation.out_lane,
            "edge": i.edge.as_value(),
            "pair": i.pair if self.paired else Const(0),
            "inverts": inverts,
            "sums": sums,
            "partial": sums & ~(i.edge.last | i.edge.error),
        }
        sideband: Any = Signal(_Sideband)
        # One assignment: in Verilog a constant part would be a block that no change triggers.
        parts = [fields[name] for name in _Sideband.as_shape().members]
        m.d.comb += sideband.as_value().eq(Cat(parts))
        return sideband

    def _logic(self, m: Module, op: OpDecode) -> tuple[Value, Value]:
        """Return the word of a logic operation or a count in stage 1, and whether to invert it."""
        width = self._data_width
        if not self._ops - SHIFT_OPS:
            return Const(0, width), Const(0)
        m.submodules.logic = logic = Logic(width, self._ops)
        m.d.comb += [
            logic.base.eq(op.base),
            logic.negates.eq(op.negates),
            # A beat that is not of a pair is in the upper half.
            logic.a.eq(self.i.p.a[-width:]),
            logic.b.eq(self.i.p.b[-width:]),
        ]
        return logic.o, logic.negate

    def _count(
        self, m: Module, load: list[Signal], op: OpDecode, word: Value
    ) -> tuple[Value, Value]:
        """Return the counts of ``word`` in stage 2, and in 64-bit lanes in stage 3; else 0."""
        width, operation = self._data_width, self.i.p.operation
        if not self._ops & COUNT_OPS:
            return Const(0, width), Const(0, width)
        m.submodules.popcount = popcount = Popcount(width, self._counted)
        m.d.comb += [
            popcount.load.eq(Cat(load[:2])),
            popcount.enable.eq(op.counts),
            popcount.lane.eq(operation.lane),
            popcount.test.eq(operation.test),
            popcount.tests.eq(self._tests(m, load[0], word)),
            popcount.a.eq(word),
            popcount.inside.eq(self.i.p.inside if self._sums else -1),
        ]
        if Lane.BITS_64 in self._counted:
            m.d.comb += [
                popcount.joins.eq(operation.lane == Lane.BITS_64),
                popcount.negate.eq(operation.negate),
            ]
        if self._sums:
            with m.If(operation.sums):
                m.d.comb += popcount.lane.eq(max(self._counted))
        return popcount.o, popcount.o_64

    def _tests(self, m: Module, load: Value, word: Value) -> Value:
        """Return the tests of the elements of ``word`` in stage 1."""
        operation = self.i.p.operation
        pairs = Lane.BITS_64 in self._lanes - self._counted
        halves = (operation.lane == Lane.BITS_64) & (not pairs)
        m.submodules.tests = tests = LaneTests(self._data_width, self._counted, pairs=pairs)
        m.d.comb += [
            tests.a.eq(word),
            tests.lane.eq(operation.lane),
            # The tests of halves of an element are negated when they are joined.
            tests.negate.eq(operation.negate & ~halves),
            *([tests.test.eq(operation.test)] if pairs else []),
        ]
        if pairs:
            m.d.comb += tests.take.eq(load & self.i.valid)
        return tests.o

    def _shift(self, m: Module, load: list[Signal], op: OpDecode, inverts: Value) -> Value:
        """Return the shifted word in stage 3; all its bits are ``inverts`` if it is not shifted."""
        i = self.i.p
        if not self._ops & SHIFT_OPS:
            return Const(0, len(i.a))
        m.submodules.shifter = shifter = Shifter(len(i.a), self._ops, self._lanes)
        m.d.comb += [
            shifter.load.eq(Cat(load[:2])),
            shifter.a.eq(i.a),
            shifter.b.eq(i.b),
            shifter.lane.eq(i.operation.lane),
            shifter.right.eq(op.right),
            shifter.saturate.eq(i.operation.saturate),
            shifter.arithmetic.eq(i.operation.arithmetic),
            shifter.bypass.eq(~op.shifts),
            shifter.constant.eq(inverts),
        ]
        return Mux(shifter.mirrored, Cat(reversed(shifter.o)), shifter.o)

    def _sum(self, m: Module, take: Value, counts: Value, counts_64: Value, sideband: Any) -> Value:
        """Return the sum of the run so far, behind the registers of stage 3; else 0."""
        if not self._sums:
            return Const(0, Lane.BITS_32.bits)
        widest = max(self._counted)
        m.submodules.row_sum = row_sum = RowSum(self._data_width, widest)
        m.d.comb += [
            row_sum.take.eq(take),
            row_sum.sums.eq(sideband.sums),
            row_sum.more.eq(sideband.partial),
            row_sum.counts.eq(counts_64 if widest == Lane.BITS_64 else counts),
        ]
        return row_sum.o
