"""Narrows and widens counts to the lanes of the output. Never changes any other result.

It uses no address: each beat carries the part of the output beat that its run starts in.
"""

from collections.abc import Collection

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Op
from ..streams.beats import Result, ToWrite

__all__ = ["Decode", "Decoded", "Repack"]

_OUT_LANES = (Lane.BITS_8, Lane.BITS_32)
"""The lanes that the output of counts can have."""


class Decoded(data.StructLayout):
    """A result, and how its lanes and edge change its beat.

    - ``quarters``, ``halves``: the counts of a quarter of the beat, or of a half, become 32 bits
      wide.
    - ``narrows``: the counts fill one part of an output beat, and are copied to every part here.
    - ``widens``: the counts fill several output beats, one for each part of the input beat.
    - ``last_part``: parts of the wider beat, less one.
    - ``first``: the part of a run's first beat; ``first_bytes``: the bytes of that part.
    - ``ends``: the result is the last of its output beat. Else ``end_part`` is the last part, and
      ``first_ends`` is 1 if the first part is the last too.
    """

    def __init__(self, data_width: int) -> None:
        super().__init__(
            {
                "result": Result(data_width),
                "quarters": 1,
                "halves": 1,
                "narrows": 1,
                "widens": 1,
                "last_part": 3,
                "first": 3,
                "first_bytes": data_width // 8,
                "ends": 1,
                "first_ends": 1,
                "end_part": 3,
            }
        )


class Decode(wiring.Component):
    """Decodes how `Repack` changes each result, and narrows counts. Stores nothing.

    Parameters
    ----------
    data_width, lanes, ops
        Bits of a beat, and lanes and operations of the bit unit.

    Members
    -------
    i : ``In(stream.Signature(Result(data_width)))``
        Results of the bit unit. If ``lane`` and ``out_lane`` differ, each lane holds a count of its
        ones, zero-extended, and ``out_lane`` is 8 or 32 bits.
    o : ``Out(stream.Signature(Decoded(data_width)))``

    Latency: 0 cycles. Throughput: a result a cycle.
    """

    def __init__(self, data_width: int, lanes: Collection[Lane], ops: Collection[Op]) -> None:
        self._data_width = data_width
        self._lanes = _lanes_of_results(data_width, lanes)
        self._counts = any(op.counts for op in ops)
        super().__init__(
            {
                "i": In(stream.Signature(Result(data_width))),
                "o": Out(stream.Signature(Decoded(data_width))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.payload, self.o.payload
        final = Signal(2)
        size = self._data_width // 8
        m.d.comb += [
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
            final.eq(Mux(i.lane[0], i.edge.final[1], i.edge.final)),
            o.result.eq(i),
            o.quarters.eq((i.lane == Lane.BITS_8) & (i.out_lane == Lane.BITS_32)),
            o.halves.eq((i.lane == Lane.BITS_16) & (i.out_lane == Lane.BITS_32)),
            o.narrows.eq(i.lane > i.out_lane),
            o.widens.eq(i.lane < i.out_lane),
            o.first.eq(Mux(o.narrows, i.edge.slot, 0)),
            # No beat follows a beat in error that could fill the rest of its output beat.
            o.ends.eq((i.edge.last | i.edge.error) & ~o.widens),
            o.end_part.eq(Mux(i.edge.last, final, o.last_part)),
            o.first_ends.eq(o.first == o.end_part),
            o.first_bytes.eq(-1),
        ]
        with m.Switch(Cat(i.lane, i.out_lane)):
            for lane in sorted(self._lanes):
                for out_lane in _OUT_LANES:
                    with m.Case(lane | out_lane << 2):
                        m.d.comb += o.last_part.eq((1 << abs(lane - out_lane)) - 1)
                        if lane > out_lane:
                            m.d.comb += o.first_bytes.eq(
                                _bytes_of(i.edge.slot, lane.bytes // out_lane.bytes, size)
                            )
        if self._counts:
            wide, odd = i.lane[1], i.lane[0]
            to_8 = [self._narrow(lane, Lane.BITS_8) for lane in Lane]
            to_32 = self._narrow(Lane.BITS_64, Lane.BITS_32)
            narrow = Mux(wide, Mux(odd, to_8[3], to_8[2]), to_8[1])
            narrow = Mux(i.out_lane[1], to_32, narrow)
            m.d.comb += o.result.data.eq(Mux(o.narrows, narrow, i.data))
        return m

    def _narrow(self, lane: Lane, out_lane: Lane) -> Value:
        """Return the counts side by side in ``out_lane``, repeated until the beat is full.

        Return the beat unchanged if the bit unit has no lanes of ``lane``.
        """
        if lane not in self._lanes:
            return self.i.p.data
        counts = _counts(self.i.p.data, lane)
        narrowed = Cat(Cat(count, Const(0, 32))[: out_lane.bits] for count in counts)
        return narrowed.replicate(lane.bytes // out_lane.bytes)


class Repack(wiring.Component):
    """Converts the width of lanes: packs counts into output lanes. Other results pass unchanged.

    With lanes ``n`` times as wide as the output's, ``n`` input beats fill one output beat; with
    lanes an ``n``-th as wide, an input beat becomes up to ``n`` output beats. A run never shares an
    output beat with another.

    Latency: 0 cycles without counts in ``ops``, where this is a wire, else 1 cycle; when narrowing,
    from the beat that fills the last part or ends the run; when widening, part ``k`` takes ``k``
    more. Throughput: one beat a cycle on the side that has more of them, with no idle cycle when
    runs or lanes change.
    Bound of the clock: from the part to whether the beat is done.

    Parameters
    ----------
    data_width, lanes, ops
        Bits of a beat, and lanes and operations of the bit unit.

    Members
    -------
    i : ``In(stream.Signature(Decoded(data_width)))``
        Results from `Decode`.
    o : ``Out(stream.Signature(ToWrite(data_width)))``
        Beats in the output's lanes. When narrowing, the parts of a run's first beat below
        ``edge.slot`` and those of its last beat behind its end are undefined.
    """

    def __init__(self, data_width: int, lanes: Collection[Lane], ops: Collection[Op]) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Decoded(data_width))),
                "o": Out(stream.Signature(ToWrite(data_width))),
            }
        )
        self._data_width = data_width
        self._lanes = _lanes_of_results(data_width, lanes)
        self._changes_lanes = any(op.counts for op in ops)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.p.result, self.o.payload
        if not self._changes_lanes:
            self._pass(m)
            return m
        narrows, widens = self.i.p.narrows, self.i.p.widens
        size = self._data_width // 8

        # The part of the wider beat that belongs to this one, and whether it is the last part.
        part, parts_done = Signal(3), Signal(3)
        starts, last_part, done = Signal(init=1), Signal(), Signal()
        m.d.comb += [
            part.eq(Mux(starts, self.i.p.first, parts_done)),
            last_part.eq(Mux(starts, self.i.p.first_ends, parts_done == self.i.p.end_part)),
            done.eq(self.i.p.ends | last_part),
        ]

        # Whether all parts of the input beat are sent; valid early in the cycle.
        ending, whole = Signal(), Signal()
        m.d.comb += whole.eq(~widens | Mux(parts_done == 0, self.i.p.first_ends, ending))

        # The register is a valid output beat once all its parts are loaded.
        free, load, partial = Signal(), Signal(), Signal()
        error = Signal(reset_less=True)
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            load.eq(self.i.valid & ~i.half & free),
            self.i.ready.eq(i.half | (free & whole)),
        ]
        with m.If(free):
            m.d.sync += self.o.valid.eq(self.i.valid & ~i.half & (done | ~narrows))
        with m.If(load):
            m.d.sync += [
                parts_done.eq(Mux(done, 0, part + 1)),
                ending.eq(self.i.p.end_part == (parts_done + 1)[:3]),
                starts.eq(i.edge.last & done),
                partial.eq(~done & narrows),
                error.eq(i.edge.error | (partial & error)),
            ]

        held_data = Signal(self._data_width, reset_less=True)
        mine = self._part(m, starts, load)
        for byte in range(size):
            # Without `valid`: bytes that are not of a beat are overwritten by the next one.
            with m.If(free & mine[byte]):
                m.d.sync += held_data.word_select(byte, 8).eq(self._byte(m, byte, parts_done))
        m.d.comb += [o.data.eq(held_data), o.error.eq(error)]
        return m

    def _pass(self, m: Module) -> None:
        i, o = self.i.p.result, self.o.payload
        m.d.comb += [
            o.data.eq(i.data),
            o.error.eq(i.edge.error),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
        ]

    def _part(self, m: Module, starts: Signal, load: Signal) -> Signal:
        """Return the bytes of the output beat that the part fills, computed one cycle ahead."""
        size = self._data_width // 8
        mine, following_bytes = Signal(size), Signal(size)
        m.d.comb += mine.eq(Mux(starts, self.i.p.first_bytes, following_bytes))
        ratios = {
            lane.bytes // out_lane.bytes
            for lane in self._lanes
            for out_lane in _OUT_LANES
            if lane > out_lane
        }
        with m.If(load):
            m.d.sync += following_bytes.eq(-1)
            with m.Switch(self.i.p.last_part):
                for ratio in sorted(ratios):
                    with m.Case(ratio - 1):
                        m.d.sync += following_bytes.eq(mine.rotate_left(size // ratio))
        return mine

    def _byte(self, m: Module, byte: int, part: Value) -> Value:
        """Return ``byte`` of the output; if the beat widens, of ``part`` of the input beat."""
        data, size = self.i.p.result.data, self._data_width // 8
        value = Signal(8, name=f"byte_{byte}")
        m.d.comb += value.eq(data.word_select(byte, 8))
        for lane, widens in (
            (Lane.BITS_8, self.i.p.quarters),
            (Lane.BITS_16, self.i.p.halves),
        ):
            if lane in self._lanes:
                with m.If(widens):
                    m.d.comb += value.eq(0)
                    if byte % 4 == 0:
                        # A part has as many counts as an output beat has 32-bit lanes.
                        counts = Array(_counts(data, lane)[byte // 4 :: size // 4])
                        m.d.comb += value.eq(counts[part[: 2 - lane]])
        return value


def _counts(data: Value, lane: Lane) -> list[Value]:
    """Return the counts of all lanes, without the bits that are 0 in every count."""
    # A lane as wide as the beat can hold the count of a pair of beats, which is up to 64.
    bits = 7 if lane.bits == len(data) else lane.bits.bit_length()
    return [data[low : low + bits] for low in range(0, len(data), lane.bits)]


def _lanes_of_results(data_width: int, lanes: Collection[Lane]) -> frozenset[Lane]:
    """Return the lanes of results: in beats of 32 bits, counts of 64-bit lanes are 32 bits wide."""
    widest = Lane(min(data_width, 64).bit_length() - 4)
    return frozenset(min(lane, widest) for lane in lanes)


def _bytes_of(part: Value, parts: int, size: int) -> Value:
    """Return which bytes of a beat of ``size`` bytes are in ``part``, one of ``parts``."""
    return Cat(part == byte * parts // size for byte in range(size))
