"""Checks the record of a command, word by word as it is read. It only collects the faults."""

from collections.abc import Collection
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..abi import (
    COUNT_OPS,
    RECORD,
    RECORD_SEAL,
    SEARCH_ENTRY_BYTES,
    STREAMS,
    Lane,
    Mode,
    Status,
    WordKind,
    loop_word,
)
from ..configuration import Configuration
from .record_words import (
    ControlWord,
    RecordGroup,
    column_word,
    counts,
    is_field,
    reads_b,
    searches,
    splits_lanes,
    sums,
)

__all__ = ["Refusals"]

_ENDS = {WordKind.BASE, WordKind.LAST}
_STEPS = {WordKind.BASE, WordKind.STRIDE, WordKind.JUMP}
"""The words of a stream that have to be multiples of an element if the stream has to be aligned."""


class _Findings(data.StructLayout):
    """The faults of the words taken so far.

    ``run_top``: the bits of RUN that the widest element shifts beyond the longest run.
    ``low``: the OR of the low bits of all addresses, strides and jumps of each of `STREAMS`. An
    aligned stream has zeros there.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(
            {
                "seal": 8,
                "run_top": 3,
                "bad_count": 1,
                "reserved": 1,
                "outside": 1,
                "low": data.ArrayLayout(3, 3),
            }
        )


class Refusals(wiring.Component):
    """Collects the faults of one record.

    Parameters
    ----------
    configuration
        The parameters of the circuit.
    columns
        Words that arrive together: 1, 2 or 4.

    Members
    -------
    group
        The words of the record.
    used
        A bit for each of the words that the command uses.
    control
        The CONTROL word, valid from the cycle after the first group.
    bad_search
        The sizes in the words taken so far are wrong for a SEARCH. Only with a search array.
    clear
        Forget the record.
    code
        Lowest `Status` that applies to the words taken so far, or OK.
    good
        ``code`` is OK.

    Latency: ``code`` and ``good`` follow the last word by 1 cycle, and CONTROL by 2. Throughput:
    ``columns`` words a cycle.
    """

    def __init__(self, configuration: Configuration, columns: int) -> None:
        self._configuration = configuration
        self._columns = columns
        self._built_words = loop_word(1) + 4 * (configuration.loops - 1)
        super().__init__(
            {
                "group": In(RecordGroup(columns)),
                "used": In(columns),
                "control": In(ControlWord()),
                **({"bad_search": In(1)} if configuration.search else {}),
                "clear": In(1),
                "code": Out(8),
                "good": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        found: Any = Signal(_Findings(self._configuration))
        with m.If(self.group.take):
            self._fold(m, found)
            for column in range(self._columns):
                self._look(m, found, column)
            for index, stream in enumerate(STREAMS):
                m.d.sync += found.low[index].eq(found.low[index] | self._low(stream))
        with m.If(self.clear):
            m.d.sync += found.eq(0)

        # CONTROL is complete long before the last word, so its checks may be a cycle late.
        bad_op, bad_lane, bad_control = Signal(), Signal(), Signal()
        m.d.sync += [
            bad_op.eq(~self.control.op.matches(*sorted(self._configuration.ops))),
            bad_lane.eq(self._bad_lane()),
            bad_control.eq(self._bad_control()),
        ]
        wrong = {
            Status.BAD_SEAL: found.seal != RECORD_SEAL,
            Status.BAD_OP: bad_op,
            Status.BAD_LANE: bad_lane,
            Status.BAD_CONTROL: bad_control | found.reserved,
            Status.BAD_SIZE: self._bad_size(m, found),
            Status.MISALIGNED: self._misaligned(m, found),
            Status.PAST_MEMORY: found.outside,
        }
        m.d.comb += self.good.eq(~Cat(wrong.values()).any())
        for status, condition in reversed(wrong.items()):  # the last assignment wins
            with m.If(condition):
                m.d.comb += self.code.eq(status)
        return m

    def _fold(self, m: Module, found: Any) -> None:
        """XOR the bytes of all words in use."""
        folded: Value = found.seal
        for column in range(self._columns):
            word = column_word(self.group, column)
            parts = word[0:8] ^ word[8:16] ^ word[16:24] ^ word[24:32]
            folded = folded ^ Mux(self.used[column], parts, 0)
        m.d.sync += found.seal.eq(folded)

    def _is(self, column: int, kinds: set[WordKind], streams: Collection[str] = ("",)) -> Value:
        """Return whether the word in ``column`` is in use, and of ``kinds`` and ``streams``."""
        fields = [
            field
            for field in RECORD.values()
            if field.kind in kinds and field.stream in streams and field.word < self._built_words
        ]
        return self.used[column] & is_field(self.group, column, fields)

    def _look(self, m: Module, found: Any, column: int) -> None:
        """Collect the faults of the word in ``column``."""
        config, word = self._configuration, column_word(self.group, column)
        for kind, bits in (
            (WordKind.RUN, config.length_bits),
            (WordKind.COUNT, config.count_bits),
        ):
            with m.If(self._is(column, {kind}) & ((word == 0) | word[bits:].any())):
                m.d.sync += found.bad_count.eq(1)
        top = slice(config.length_bits - len(found.run_top), config.length_bits)
        with m.If(self._is(column, {WordKind.RUN})):
            m.d.sync += found.run_top.eq(word[top])
        with m.If(self._is(column, {WordKind.RESERVED}) & word.any()):
            m.d.sync += found.reserved.eq(1)
        inside = (word >= config.memory_base) & (word <= config.memory_last)
        ends = self._is(column, _ENDS, ("A", "Y"))
        ends |= self._is(column, _ENDS, ("B",)) & reads_b(self.control.op)
        with m.If(ends & ~inside):
            m.d.sync += found.outside.eq(1)

    def _low(self, stream: str) -> Value:
        """Return the OR of the low bits of all addresses, strides and jumps of ``stream``."""
        low: Value = Const(0, 3)
        for column in range(self._columns):
            hit = self._is(column, _STEPS, (stream,))
            low |= Mux(hit, column_word(self.group, column)[:3], 0)
        return low

    def _bad_size(self, m: Module, found: Any) -> Value:
        """Return whether a run or a loop is empty or too long."""
        lane, out_lane = self.control.lane, self.control.out_lane
        widest = Signal(2)
        only_lane = (lane > out_lane) | self._sums() | self._searches()
        m.d.sync += widest.eq(Mux(only_lane, lane, out_lane))
        top = len(found.run_top)
        bad = found.bad_count | (found.run_top << widest)[top:].any()
        return bad | (self._searches() & self.bad_search) if self._configuration.search else bad

    def _misaligned(self, m: Module, found: Any) -> Value:
        """Return whether a stream that has to be aligned is not."""
        bad = Signal(len(STREAMS))
        for index, stream in enumerate(STREAMS):
            lane = self.control.out_lane if stream == "Y" else self.control.lane
            bound_bits = Signal(3, name=f"bound_{stream}")
            if stream == "Y":
                bound = splits_lanes(self.control.op) | ~self._dense(*STREAMS)
            else:
                bound = ~self._dense(stream)
            m.d.sync += bound_bits.eq(Mux(bound, (1 << lane) - 1, 0))
            if stream == "Y":
                with m.If(self._searches()):
                    m.d.sync += bound_bits.eq(SEARCH_ENTRY_BYTES - 1)
            m.d.comb += bad[index].eq((found.low[index] & bound_bits).any())
        return bad.any()

    def _bad_lane(self) -> Value:
        """Return whether the circuit lacks a lane that matters, or OUT_LANE is wrong."""
        config, op = self._configuration, self.control.op
        lane, out_lane = self.control.lane, self.control.out_lane
        built = Array(each in config.lanes for each in Lane)
        fits = Array(each in config.lanes and each.bytes <= config.data_bytes for each in Lane)
        sums = self.control.y_mode == Mode.SUM
        counted = (out_lane == Lane.BITS_32) | ((out_lane == Lane.BITS_8) & ~sums)
        by_elements = ~self._dense("A", "B") | ~(self._dense("Y") | sums)
        searched = (lane == Lane.BITS_8) & (out_lane == Lane.BITS_32)
        other = Mux(self._searches(), ~searched, lane != out_lane)
        return (
            Mux(counts(op), ~counted, other)
            | (splits_lanes(op) & ~built[lane])
            | (by_elements & ~fits[lane])
        )

    def _bad_control(self) -> Value:
        """Return whether a field is out of range, or a bit outside all fields is set."""
        config, control = self._configuration, self.control
        known = 0
        for bits in RECORD["CONTROL"].bits:
            known |= ((1 << bits.width) - 1) << bits.low
        bad = Cat(bit for at, bit in enumerate(Value.cast(control)) if not known >> at & 1).any()
        bad |= (control.loops > config.loops) | (control.loops == 0)
        operands, result = config.modes - {Mode.SUM}, config.modes - {Mode.REPEAT}
        for stream in STREAMS:
            built = result if stream == "Y" else operands
            bad |= ~control[f"{stream.lower()}_mode"].matches(*sorted(built))
        counted = counts(control.op) if config.ops & COUNT_OPS else Const(0)
        bad |= (self._sums() | control.test) & ~counted
        bad |= control.negate & ~control.test
        bad |= self._searches() & ((control.loops != 1) | ~self._dense(*STREAMS))
        return bad | (~reads_b(control.op) & ~self._dense("B"))

    def _sums(self) -> Value:
        return sums(self.control, self._configuration)

    def _searches(self) -> Value:
        return searches(self.control, self._configuration)

    def _dense(self, *streams: str) -> Value:
        """Return whether all of ``streams`` are DENSE."""
        return Cat(self.control[f"{x.lower()}_mode"] == Mode.DENSE for x in streams).all()
