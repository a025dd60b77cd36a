"""The bit unit: logic, shifts and counts on a stream of beats. Must never reorder or drop a beat.

It handles no addresses: the position of a beat in its run travels with it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import COUNT_OPS, SHIFT_OPS, Lane, Op
from ..streams.beats import Operands, Result
from .beat_pairs import AddPairs, PairBeats, PairedOperands, PairedResult, SplitBeats
from .logic import Logic
from .op_decode import OpDecode, decode
from .popcount import Popcount
from .row_sum import RowSum
from .shift import Shifter

__all__ = ["BitUnit"]

_SLICE = 64
"""Lanes are never wider, so wider beats are cut into slices of this many bits."""


class BitUnit(wiring.Component):
    """Computes one beat of results a cycle.

    Latency: ``latency`` cycles, which depends on what is built alone: 3 with a shift, with sums, or
    with a count of 64-bit lanes in beats of 64 bits or more; else 2 with a count; else 1.
    Throughput: one beat a cycle.

    Beats of runs that are summed are counted in the widest lane that is built. All but the last are
    ``partial``; the last one has the sum, in every 32 bits, and ``lane`` 32 bits. A beat in error
    is not ``partial``, because the rest of its run may never arrive.

    If ``data_width`` is 32 and ``lanes`` has 64-bit lanes, a shift or count in them takes two beats
    an element, the low half first; runs of these start with a low half and end with a high one.
    Shifts then give two beats an element, both ``latency + 1`` cycles after theirs; the first has
    ``last`` and ``end`` clear, and both have ``error`` if either had. An idle cycle of the output
    may precede the first of them. Of a count the first result is ``partial`` and means nothing; the
    second has ``lane`` 32 bits, ``slot`` halved, and ``error`` if either had.

    Size and clock out of context (Yosys 0.70, nextpnr 0.11.1, all lanes; ECP5 speed 6 with
    ``-nowidelut`` but for logic alone; a CCU2C beside LUT4 is two more):

    ==================== ========== ============================== ======= =========================
    Operations           Width      Area                           MHz     Slowest path
    ==================== ========== ============================== ======= =========================
    all                  64, ECP5   939 LUT4, 22 CCU2C, 506 FF     150     ones of 32 bits
    all                  32, ECP5   897 LUT4, 13 CCU2C, 491 FF     147     excess to whole bytes
    logic, counts        64, ECP5   257 LUT4, 22 CCU2C, 280 FF     159     ones of 32 bits
    logic                64, ECP5   129 LUT4, 77 FF                320     ``o.ready`` to the stage
    AND, OR, XOR, NOT    64, ECP5   65 LUT4, 77 FF                 327     ``o.ready`` to the stage
    NOT                  32, ECP5   33 LUT4, 45 FF                 398     ``o.ready`` to the stage
    logic, counts        32, iCE40  169 LUT4, 118 FF (HX8K)        138     ``i`` to ones of 8 bits
    all                  32, iCE40  931 LUT4, 491 FF (HX8K)        127     ``SplitBeats`` to 1
    ==================== ========== ============================== ======= =========================

    Parameters
    ----------
    data_width, ops, lanes
        Bits of a beat, and what can be done with it.
    sums
        Whether counts of runs can be summed; this takes a count in ``ops``.

    Members
    -------
    i : ``In(stream.Signature(Operands(data_width)))``
        Beats of both operands. Operations that are not in ``ops``, and shifts and counts in lanes
        that are not in ``lanes``, must not be sent: their results are undefined.
    o : ``Out(stream.Signature(Result(data_width)))``
        Results, in the same order. ``lane`` is the lane of the data: counts are in the low bits of
        these lanes, zero-extended.

    Raises ``ValueError`` if ``ops`` is empty, or needs lanes and none of ``lanes`` can be built.
    """

    def __init__(
        self,
        data_width: int,
        ops: Collection[Op],
        lanes: Collection[Lane],
        *,
        sums: bool = False,
    ) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Operands(data_width))),
                "o": Out(stream.Signature(Result(data_width))),
            }
        )
        if not ops:
            raise ValueError("ops: empty; expected at least one operation")
        self._data_width = data_width
        self._ops = frozenset(ops)
        self._lanes = frozenset(lanes)
        self._pipeline = Pipeline(data_width, self._ops, self._lanes, sums=sums)

    @property
    def latency(self) -> int:
        """Cycles from a beat to its result."""
        return self._pipeline.latency

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pipeline = pipeline = self._pipeline
        source, sink = wiring.flipped(self.i), wiring.flipped(self.o)
        pairs = self._data_width < _SLICE and Lane.BITS_64 in self._lanes
        if pairs and self._ops & SHIFT_OPS:
            m.submodules.pair_beats = pair_beats = PairBeats(self._data_width)
            m.submodules.split_beats = split_beats = SplitBeats(self._data_width)
            wiring.connect(m, source, pair_beats.i)
            wiring.connect(m, pair_beats.o, pipeline.i)
            wiring.connect(m, pipeline.o, split_beats.i)
            results = split_beats.o
        else:
            wiring.connect(m, source, pipeline.i)
            results = pipeline.o
        if pairs and self._ops & COUNT_OPS:
            m.submodules.add_pairs = add_pairs = AddPairs()
            wiring.connect(m, results, add_pairs.i)
            results = add_pairs.o
        wiring.connect(m, results, sink)
        return m


class Pipeline(wiring.Component):
    """The stages of the bit unit, without the pairing of beats.

    ======  =============================  =============================  =========================
    Stage   Logic                          Counts                         Shifts
    ======  =============================  =============================  =========================
    1       compute the word               count the ones of bytes        decode counts and fills
    2       wait                           add up to 32 bits              move whole bytes
    3       invert                         add up to 64 bits and to rows  move single bits
    ======  =============================  =============================  =========================

    Stages that no operation needs are not built; the inversion is in the last one. A unit gives 0
    for an operation of another unit, so that a merge is one OR: a multiplexer would need the
    operation as a further input and thus a second LUT4 for each bit. Where shifts are built, the
    shifter gives the inversion, 0 or all ones, in place of a shift, and the merge is an XOR.

    The last stage takes a beat when it is empty or is being emptied; the others move with it, or if
    ``paired``, do as it does.

    Latency: ``latency``, 1 to 3 cycles, see ``BitUnit``. Throughput: one beat a cycle.

    Members
    -------
    i : ``In(stream.Signature(...))``
        ``PairedOperands(data_width)`` if ``paired``, else ``Operands(data_width)``.
    o : ``Out(stream.Signature(...))``
        ``PairedResult(data_width)`` if ``paired``, else ``Result(data_width)``.
    """

    def __init__(
        self, data_width: int, ops: frozenset[Op], lanes: frozenset[Lane], *, sums: bool
    ) -> None:
        self._data_width = data_width
        self._ops = ops
        self._lanes = lanes
        self._shifts = bool(ops & SHIFT_OPS)
        self._sums = sums
        fits = Lane(min(data_width, _SLICE).bit_length() - 4)
        # Of a lane wider than a beat each beat is counted, as is each of several slices.
        self._counted = frozenset(min(built, fits) for built in lanes)
        wide = bool(ops & COUNT_OPS) and Lane.BITS_64 in self._counted
        self.latency = 3 if self._shifts or sums or wide else 2 if ops & COUNT_OPS else 1
        self.paired = self._shifts and data_width < _SLICE and Lane.BITS_64 in lanes
        """Whether shifts are twice as wide as a beat."""
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
        i, o, width = self.i.payload, self.o.payload, self._data_width
        registers = self._flow(m)
        op = decode(i.operation.op, self._ops)
        sums = i.operation.sums if self._sums else Const(0)
        last = self.latency
        m.d.comb += [
            o.lane.eq(registers.carry(Mux(sums, Lane.BITS_32, i.operation.lane), "lane", 0, last)),
            o.out_lane.eq(registers.carry(i.operation.out_lane, "out_lane", 0, last)),
            o.edge.eq(registers.carry(i.edge.as_value(), "edge", 0, last)),
        ]
        if self.paired:
            m.d.comb += o.pair.eq(registers.carry(i.pair, "pair", 0, last))

        word, negate = self._logic(m, op)
        if last == 1:
            m.d.comb += o.data.eq(registers.carry(word ^ negate.replicate(width), "data", 0, 1))
            return m
        data = registers.carry(Mux(op.is_logic, word, 0), "data", 0, 1)
        if not self._shifts:
            data ^= registers.carry(negate, "negate", 0, 1).replicate(width)
        counts_64: Value = Const(0, width)
        if self._ops & COUNT_OPS:
            counters = self._count(m, registers, op, word)
            data |= Cat(counter.o for counter in counters)
            counts_64 = Cat(counter.o_64 for counter in counters)
        data = registers.carry(data, "data", 1, 2)
        if last == 3:
            counts = counts_64 if max(self._counted, default=0) == Lane.BITS_64 else data
            data |= counts_64
            if self._shifts:
                unshifted = Cat(Const(0, len(i.a) - width), data)
                data = unshifted ^ self._shift(m, registers, op, negate)
            summed = registers.carry(sums, "sums", 0, 2)
            data = registers.carry(Mux(summed, 0, data), "data", 2, 3)
            if self._sums:
                total = self._sum(m, registers, counts, summed)
                data |= total.replicate(len(data) // len(total))
        m.d.comb += o.data.eq(data)
        return m

    def _logic(self, m: Module, op: OpDecode) -> tuple[Value, Value]:
        """Return the word of a logic operation or a count, and whether to invert it."""
        i, width = self.i.payload, self._data_width
        if not self._ops - SHIFT_OPS:
            return Const(0, width), Const(0)
        m.submodules.logic = logic = Logic(width, self._ops)
        m.d.comb += [
            logic.base.eq(op.base),
            logic.negates.eq(op.negates),
            # A single beat is in the upper half.
            logic.a.eq(i.a[-width:]),
            logic.b.eq(i.b[-width:]),
        ]
        return logic.o, logic.negate

    def _sum(self, m: Module, registers: "_Registers", counts: Value, sums: Value) -> Value:
        """Return the sum of the run's counts so far, in stage 3; 0 if the run is not summed."""
        i, widest = self.i.payload, max(self._counted)
        more = registers.carry(i.operation.sums & ~(i.edge.last | i.edge.error), "more", 0, 2)
        m.submodules.row_sum = row_sum = RowSum(self._data_width, widest)
        m.d.comb += [
            row_sum.take.eq(registers.load[2] & registers.valid[1]),
            row_sum.sums.eq(sums),
            row_sum.more.eq(more),
            row_sum.counts.eq(counts),
            self.o.p.partial.eq(registers.carry(more, "partial", 2, 3)),
        ]
        return row_sum.o

    def _flow(self, m: Module) -> "_Registers":
        """Compute when beats move from stage to stage.

        All stages move at once, so that none waits for all later ones; but pairs arrive at half the
        rate at which their halves leave, and the gaps between pairs have to close.
        """
        stages = self.latency
        valid = [Signal(name=f"valid_{stage + 1}") for stage in range(stages)]
        load = [Signal(name=f"load_{stage + 1}") for stage in range(stages)]
        for stage in range(stages):
            after = load[stage + 1] if stage + 1 < stages else self.o.ready
            before = valid[stage - 1] if stage else self.i.valid
            closes = self.paired or stage == stages - 1
            m.d.comb += load[stage].eq((~valid[stage] | after) if closes else after)
            with m.If(load[stage]):
                m.d.sync += valid[stage].eq(before)
        m.d.comb += [self.i.ready.eq(load[0]), self.o.valid.eq(valid[-1])]
        return _Registers(m, valid, load)

    def _count(
        self, m: Module, registers: "_Registers", op: OpDecode, word: Value
    ) -> list[Popcount]:
        """Count the ones of each lane of ``word``; a lane wider than a beat has a count a beat."""
        width, operation = self._data_width, self.i.p.operation
        lane, inside = operation.lane, Const(-1, width // 8)
        if self._sums:
            lane, inside = Mux(operation.sums, max(self._counted), lane), self.i.p.inside
        counters = []
        for start in range(0, width, _SLICE):
            size = min(width, _SLICE)
            counter = Popcount(size, self._counted)
            m.submodules += counter
            m.d.comb += [
                counter.load.eq(Cat(registers.load)),
                counter.enable.eq(op.counts),
                counter.lane.eq(lane),
                counter.a.eq(word[start : start + size]),
                counter.inside.eq(inside[start // 8 : (start + size) // 8]),
            ]
            counters.append(counter)
        return counters

    def _shift(self, m: Module, registers: "_Registers", op: OpDecode, invert: Value) -> Value:
        """Return the shifted word, after stage 2; ``invert`` in all bits if nothing is shifted."""
        i, ops = self.i.payload, self._ops
        right = op.right if ops >= SHIFT_OPS else Const(int(Op.SHIFT_RIGHT in ops))
        reverse = registers.carry(right, "reverse", 0, 2)
        shifted = []
        for start in range(0, len(i.a), _SLICE):
            size = min(len(i.a), _SLICE)
            shifter = Shifter(size, ops, self._lanes)
            m.submodules += shifter
            m.d.comb += [
                shifter.load.eq(Cat(registers.load)),
                shifter.a.eq(i.a[start : start + size]),
                shifter.b.eq(i.b[start : start + size]),
                shifter.lane.eq(i.operation.lane),
                shifter.right.eq(right),
                shifter.saturate.eq(i.operation.saturate),
                shifter.arithmetic.eq(i.operation.arithmetic),
                shifter.bypass.eq(~op.shifts),
                shifter.constant.eq(invert),
            ]
            shifted.append(Mux(reverse, Cat(reversed(shifter.o)), shifter.o))
        return Cat(shifted)


@dataclass(frozen=True)
class _Registers:
    """The registers between the stages.

    ``valid[k]``: stage ``k + 1`` holds a beat. ``load[k]``: it takes the beat of stage ``k``, or of
    the input, at this clock edge.
    """

    m: Module
    valid: Sequence[Signal]
    load: Sequence[Signal]

    def carry(self, value: Value, name: str, first: int, last: int) -> Value:
        """Return ``value`` of stage ``first``, the input being 0, as stage ``last`` holds it."""
        for stage in range(first, last):
            register = Signal(len(value), name=f"{name}_{stage + 1}", reset_less=True)
            with self.m.If(self.load[stage]):
                self.m.d.sync += register.eq(value)
            value = register
        return value
