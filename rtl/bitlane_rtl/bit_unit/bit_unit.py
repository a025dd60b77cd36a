"""The bit unit: logic, shifts and counts on a stream of beats. Must never reorder or drop a beat.

Knows nothing of runs or memory: where a beat stands in its run is passed along.
"""

from collections.abc import Callable, Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import COUNT_OPS, LOGIC_OPS, SHIFT_OPS, Lane, Op
from ..streams.beats import Operands, Result
from .halves import Accumulate, Gather, Gathered, Spread, SpreadResult
from .logic import Logic
from .popcount import Popcount
from .shift import Shifter

__all__ = ["BitUnit"]

_SLICE = 64
"""Lanes are never wider, so wider beats are cut into slices of this many bits."""


class BitUnit(wiring.Component):
    """Computes one beat of results a cycle.

    Latency: ``latency`` cycles, which depends on what is built alone: 3 with a shift, or with a
    count of 64-bit lanes in beats of 64 bits or more; else 2 with a count; else 1. Throughput: one
    beat a cycle.

    If ``data_width`` is 32 and ``lanes`` has 64-bit lanes, a shift or count in them takes two beats
    an element, the low half first; runs of these start with a low half and end with a high one.
    Shifts then give two beats an element, both ``latency + 1`` cycles after theirs; the first has
    ``last`` and ``end`` clear, and both have ``error`` if either had. An idle cycle of the output
    may precede the first of them. Of a count the first result is ``half`` and means nothing; the
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
    all                  32, iCE40  931 LUT4, 491 FF (HX8K)        127     ``Spread`` to stage 1
    ==================== ========== ============================== ======= =========================

    Members
    -------
    i : ``In(stream.Signature(Operands(data_width)))``
        Beats of both operands. Operations that are not in ``ops``, and shifts and counts in lanes
        that are not in ``lanes``, must not be sent: what comes of them is undefined.
    o : ``Out(stream.Signature(Result(data_width)))``
        Results, in the same order. ``lane`` is the one that the data is in: counts stand in the low
        bits of these lanes, zero-extended.

    Raises ``ValueError`` if ``ops`` is empty, or needs lanes and none of ``lanes`` can be built.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, data_width: int, ops: Collection[Op], lanes: Collection[Lane]) -> None:
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

    @property
    def latency(self) -> int:
        """Cycles from a beat to its result."""
        return _stages(self._data_width, self._ops, self._lanes)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pipeline = pipeline = Pipeline(self._data_width, self._ops, self._lanes)
        source, sink = wiring.flipped(self.i), wiring.flipped(self.o)
        pairs = self._data_width < _SLICE and Lane.BITS_64 in self._lanes
        if pairs and self._ops & SHIFT_OPS:
            m.submodules.gather = gather = Gather(self._data_width)
            m.submodules.spread = spread = Spread(self._data_width)
            wiring.connect(m, source, gather.i)
            wiring.connect(m, gather.o, pipeline.i)
            wiring.connect(m, pipeline.o, spread.i)
            results = spread.o
        else:
            wiring.connect(m, source, pipeline.i)
            results = pipeline.o
        if pairs and self._ops & COUNT_OPS:
            m.submodules.accumulate = accumulate = Accumulate()
            wiring.connect(m, results, accumulate.i)
            results = accumulate.o
        wiring.connect(m, results, sink)
        return m


def _stages(data_width: int, ops: frozenset[Op], lanes: frozenset[Lane]) -> int:
    if ops & SHIFT_OPS or (ops & COUNT_OPS and Lane.BITS_64 in lanes and data_width >= _SLICE):
        return 3
    return 2 if ops & COUNT_OPS else 1


class Pipeline(wiring.Component):
    """The stages of the bit unit, without the pairing of beats.

    The last stage takes a beat when it is empty or is being emptied; the others move with it, or if
    ``gathers``, do as it does.

    Latency: 1 to 3 cycles, see ``BitUnit``. Throughput: one beat a cycle.

    Members
    -------
    i : ``In(stream.Signature(...))``
        ``Gathered(data_width)`` if ``gathers``, else ``Operands(data_width)``.
    o : ``Out(stream.Signature(...))``
        ``SpreadResult(data_width)`` if ``gathers``, else ``Result(data_width)``.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, data_width: int, ops: frozenset[Op], lanes: frozenset[Lane]) -> None:
        self._data_width = data_width
        self._ops = ops
        self._lanes = lanes
        self._shifts = bool(ops & SHIFT_OPS)
        self.gathers = self._shifts and data_width < _SLICE and Lane.BITS_64 in lanes
        """Whether shifts are twice as wide as a beat."""
        super().__init__(
            {
                "i": In(stream.Signature((Gathered if self.gathers else Operands)(data_width))),
                "o": Out(stream.Signature((SpreadResult if self.gathers else Result)(data_width))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.payload, self.o.payload
        ops, width = self._ops, self._data_width
        op, lane = i.operation.op, i.operation.lane
        is_logic = ~op[3] if ops - LOGIC_OPS else Const(1)
        stages = _stages(width, ops, self._lanes)

        load = self._flow(m, stages)

        def delayed(value: Value, name: str, first: int = 0, last: int = stages) -> Value:
            """``value`` of stage ``first``, as stage ``last`` has it; the input is stage 0."""
            for stage in range(first, last):
                held = Signal(len(value), name=f"{name}_{stage + 1}", reset_less=True)
                with m.If(load[stage]):
                    m.d.sync += held.eq(value)
                value = held
            return value

        m.d.comb += [
            o.lane.eq(delayed(lane, "lane")),
            o.out_lane.eq(delayed(i.operation.out_lane, "out_lane")),
            o.edge.eq(delayed(i.edge.as_value(), "edge")),
        ]
        if self.gathers:
            m.d.comb += o.pair.eq(delayed(i.pair, "pair"))

        # Logic and counts: what has no pairs stands in the upper half of gathered beats.
        a, b = i.a[-width:], i.b[-width:]
        word: Value = Const(0, width)
        negate: Value = Const(0)
        if ops - SHIFT_OPS:
            m.submodules.logic = logic = Logic(width, ops)
            m.d.comb += [logic.op.eq(op), logic.a.eq(a), logic.b.eq(b)]
            word, negate = logic.o, logic.negate
        if stages == 1:
            m.d.comb += o.data.eq(delayed(word ^ negate.replicate(width), "data"))
            return m
        data = delayed(Mux(is_logic, word, 0), "data", 0, 1)
        if not self._shifts:
            data ^= delayed(negate, "negate", 0, 1).replicate(width)
        late: Value = Const(0, width)
        if ops & COUNT_OPS:
            counters = self._count(m, load, word)
            data |= Cat(counter.o for counter in counters)
            late = Cat(counter.o_64 for counter in counters)
        data = delayed(data, "data", 1, 2)
        if stages == 3:
            data |= late
            if self._shifts:
                unshifted = Cat(Const(0, len(i.a) - width), data)
                # Of these two, one is 0, or all ones to invert the other.
                data = unshifted ^ self._shift(m, load, negate, delayed)
            data = delayed(data, "data", 2, 3)
        m.d.comb += o.data.eq(data)
        return m

    def _flow(self, m: Module, stages: int) -> list[Signal]:
        """When beats move: ``load[k]`` is high when stage k + 1 takes that of stage k, or of ``i``.

        All stages move at once, so that none waits for all that follow; but pairs come at half the
        rate that their halves leave at, and the gaps between them have to close.
        """
        valid = [Signal(name=f"valid_{stage + 1}") for stage in range(stages)]
        load = [Signal(name=f"load_{stage + 1}") for stage in range(stages)]
        for stage in range(stages):
            after = load[stage + 1] if stage + 1 < stages else self.o.ready
            before = valid[stage - 1] if stage else self.i.valid
            closes = self.gathers or stage == stages - 1
            m.d.comb += load[stage].eq((~valid[stage] | after) if closes else after)
            with m.If(load[stage]):
                m.d.sync += valid[stage].eq(before)
        m.d.comb += [self.i.ready.eq(load[0]), self.o.valid.eq(valid[-1])]
        return load

    def _count(self, m: Module, load: list[Signal], word: Value) -> list[Popcount]:
        """Count the ones of each lane of ``word``. A wider lane takes several: those of each."""
        width, op = self._data_width, self.i.p.operation.op
        widest = Lane(min(width, _SLICE).bit_length() - 4)
        counters = []
        for start in range(0, width, _SLICE):
            size = min(width, _SLICE)
            counter = Popcount(size, {min(built, widest) for built in self._lanes})
            m.submodules += counter
            m.d.comb += [
                counter.load.eq(Cat(load)),
                counter.enable.eq(op[3] & op[2] if self._shifts else op[3]),
                counter.lane.eq(self.i.p.operation.lane),
                counter.a.eq(word[start : start + size]),
            ]
            counters.append(counter)
        return counters

    def _shift(
        self, m: Module, load: list[Signal], invert: Value, delayed: Callable[..., Value]
    ) -> Value:
        """What the shifters give in the second stage; without a shift, all bits are ``invert``."""
        i, ops = self.i.payload, self._ops
        op, lane = i.operation.op, i.operation.lane
        right = op[0] if ops >= SHIFT_OPS else Const(int(Op.SHIFT_RIGHT in ops))
        reverse = delayed(right, "reverse", 0, 2)
        shifted = []
        for start in range(0, len(i.a), _SLICE):
            size = min(len(i.a), _SLICE)
            shifter = Shifter(size, ops, self._lanes)
            m.submodules += shifter
            m.d.comb += [
                shifter.load.eq(Cat(load)),
                shifter.a.eq(i.a[start : start + size]),
                shifter.b.eq(i.b[start : start + size]),
                shifter.lane.eq(lane),
                shifter.right.eq(right),
                shifter.saturate.eq(i.operation.saturate),
                shifter.arithmetic.eq(i.operation.arithmetic),
                shifter.bypass.eq(~op[3] | op[2]),
                shifter.constant.eq(invert),
            ]
            shifted.append(Mux(reverse, Cat(reversed(shifter.o)), shifter.o))
        return Cat(shifted)
