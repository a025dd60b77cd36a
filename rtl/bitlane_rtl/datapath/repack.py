"""Narrows and widens counts to the lanes of the output. Must never change any other result.

Knows nothing of addresses: which part of an output beat a run starts with comes with the beats.
"""

from collections.abc import Collection
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Op
from ..streams.beats import Result, ToWrite
from ..streams.queue import Skid, Slack

__all__ = ["Repack"]

_OUT_LANES = (Lane.BITS_8, Lane.BITS_32)
"""What COUNT may give."""


class _Decoded(data.StructLayout):
    """A result and what its lanes and edge say.

    ``last_part``: parts of the wider beat, less one. ``first``: the part of a run's first beat, and
    ``first_bytes``: those that it goes to. ``ends``: nothing more goes into the same beat; else
    ``end_part`` is the last that does.
    """

    def __init__(self, data_width: int) -> None:
        super().__init__(
            {
                "result": Result(data_width),
                "passes": 1,
                "narrows": 1,
                "widens": 1,
                "last_part": 3,
                "first": 3,
                "first_bytes": data_width // 8,
                "ends": 1,
                "end_part": 3,
            }
        )


class Repack(wiring.Component):
    """Puts results into output lanes. Only COUNT has output lanes other than its lanes.

    With lanes ``n`` times as wide as the output's, ``n`` input beats fill one output beat; with
    lanes an ``n``-th as wide, an input beat becomes up to ``n`` output beats. A run never shares an
    output beat with another.

    Latency: 0 cycles without COUNT in ``ops``, where this is a wire. Else 1 cycle, or 2 if
    ``pipelined``, where a register takes the place of the spare entry; when narrowing,
    from the beat that fills the last part or ends the run; when widening, part ``k`` takes ``k``
    more. One beat waits inside while the parts of the one before it leave. Throughput: one beat a
    cycle on the side that has more of them, with no idle cycle when runs or lanes change.

    Size and clock out of context with 64 bits and all lanes, on ECP5 speed 6: 488 LUT4 and 173 FF
    at 139 MHz, or with ``pipelined`` 400 LUT4 and 265 FF at 183 MHz; with 32 bits on iCE40 HX8K 185
    LUT4 and 101 FF at 116 MHz. The slowest path is from the part to whether the beat is done.

    Parameters
    ----------
    data_width, lanes, ops
        Bits of a beat, and what the bit unit is built with.
    pipelined
        Whether results enter through a register, for the clock.

    Members
    -------
    i : ``In(stream.Signature(Result(data_width)))``
        Results. If ``lane`` and ``out_lane`` differ, each lane holds a count of its ones,
        zero-extended, and ``out_lane`` is 8 or 32 bits.
    o : ``Out(stream.Signature(ToWrite(data_width)))``
        Beats in the output's lanes. When narrowing, the parts of a run's first beat below
        ``edge.slot`` and those of its last beat behind its end are undefined.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(
        self,
        data_width: int,
        lanes: Collection[Lane],
        ops: Collection[Op],
        *,
        pipelined: bool = False,
    ) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Result(data_width))),
                "o": Out(stream.Signature(ToWrite(data_width))),
            }
        )
        self._data_width = data_width
        # Of 64-bit lanes in beats of 32 bits, the bit unit makes 32-bit ones.
        widest = Lane(min(data_width, 64).bit_length() - 4)
        self._lanes = frozenset(min(lane, widest) for lane in lanes)
        self._changes_lanes = Op.COUNT in ops
        self._pipelined = pipelined

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.payload, self.o.payload
        if not self._changes_lanes:
            m.d.comb += [
                o.data.eq(i.data),
                o.last.eq(i.edge.last),
                o.end.eq(i.edge.end),
                o.error.eq(i.edge.error),
                self.o.valid.eq(self.i.valid),
                self.i.ready.eq(self.o.ready),
            ]
            return m

        # What the lanes say is found out before the entry that parts the two sides, which is needed
        # anyway: else what follows from it would reach the operands in one cycle.
        register = Skid if self._pipelined else Slack
        m.submodules.entry = entry = register(_Decoded(self._data_width))
        decoded = entry.i.p
        final = Signal(2)
        m.d.comb += final.eq(Mux(i.lane[0], i.edge.final[1], i.edge.final))
        m.d.comb += [
            decoded.result.eq(i),
            decoded.passes.eq(i.lane == i.out_lane),
            decoded.narrows.eq(i.lane > i.out_lane),
            decoded.widens.eq(i.lane < i.out_lane),
            decoded.first.eq(Mux(decoded.narrows, i.edge.slot, 0)),
            decoded.ends.eq(i.edge.last & ~decoded.widens),
            decoded.end_part.eq(Mux(i.edge.last, final, decoded.last_part)),
            entry.i.valid.eq(self.i.valid),
            self.i.ready.eq(entry.i.ready),
        ]
        size = self._data_width // 8
        m.d.comb += decoded.first_bytes.eq(-1)
        with m.Switch(Cat(i.lane, i.out_lane)):
            for lane in sorted(self._lanes):
                for out_lane in _OUT_LANES:
                    with m.Case(lane | out_lane << 2):
                        m.d.comb += decoded.last_part.eq((1 << abs(lane - out_lane)) - 1)
                        if lane > out_lane:
                            m.d.comb += decoded.first_bytes.eq(
                                _bytes_of(i.edge.slot, lane.bytes // out_lane.bytes, size)
                            )
        i, valid, ready = entry.o.p.result, entry.o.valid, entry.o.ready
        passes, narrows, widens = entry.o.p.passes, entry.o.p.narrows, entry.o.p.widens
        last_part = entry.o.p.last_part

        # The part of the wider beat that goes with this one, and whether it is the last needed.
        part, parts_done = Signal(3), Signal(3)
        starts, done = Signal(init=1), Signal()
        m.d.comb += [
            part.eq(Mux(starts, entry.o.p.first, parts_done)),
            done.eq(entry.o.p.ends | (part == entry.o.p.end_part)),
        ]

        # What stands in the register counts as a beat once it is complete.
        load, partial = Signal(), Signal()
        last, end, error = (Signal(name=name, reset_less=True) for name in ("last", "end", "error"))
        m.d.comb += [
            load.eq(valid & (~self.o.valid | self.o.ready)),
            ready.eq((~self.o.valid | self.o.ready) & (done | ~widens)),
        ]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(valid & (done | ~narrows))
        with m.If(load):
            m.d.sync += [
                parts_done.eq(Mux(done, 0, part + 1)),
                starts.eq(i.edge.last & done),
                partial.eq(~done & narrows),
                last.eq(i.edge.last & done),
                end.eq(i.edge.end & done),
                error.eq(i.edge.error | (partial & error)),
            ]

        held_data = Signal(self._data_width, reset_less=True)
        counts = self._counts(m, i, part)
        # The bytes that go with `part`, found a cycle ahead.
        mine, following_bytes = Signal(size), Signal(size)
        m.d.comb += mine.eq(Mux(starts, entry.o.p.first_bytes, following_bytes))
        ratios = {
            lane.bytes // out_lane.bytes
            for lane in self._lanes
            for out_lane in _OUT_LANES
            if lane > out_lane
        }
        with m.If(load):
            m.d.sync += following_bytes.eq(-1)
            with m.Switch(last_part):
                for ratio in sorted(ratios):
                    with m.Case(ratio - 1):
                        m.d.sync += following_bytes.eq(mine.rotate_left(size // ratio))
        for byte in range(size):
            own, held = i.data.word_select(byte, 8), held_data.word_select(byte, 8)
            with m.If(load & mine[byte]):
                m.d.sync += held.eq(Mux(passes, own, counts[byte]))
        m.d.comb += [o.data.eq(held_data), o.last.eq(last), o.end.eq(end), o.error.eq(error)]
        return m

    def _counts(self, m: Module, i: Any, part: Value) -> list[Signal]:
        """For each byte of the output, the count that it takes when the lanes differ."""
        size = self._data_width // 8

        def count(lane: Lane, index: int) -> Value:
            """The count in lane ``index``, without the bits that are 0 in every count."""
            low = index * lane.bits
            # In a lane as wide as the beat stands the count of a pair too, which is up to 64.
            bits = 7 if lane.bits == self._data_width else lane.bits.bit_length()
            return i.data[low : low + bits]

        counts = []
        for byte in range(size):
            to_8: dict[Lane, Value] = {
                lane: count(lane, byte % (size // lane.bytes))
                for lane in self._lanes - {Lane.BITS_8}
            }
            to_32: dict[Lane, Value] = {}
            if byte % 4 == 0:
                to_32 = {
                    lane: Array(
                        count(lane, (byte // 4 + quarter * size // 4) % (size // lane.bytes))
                        for quarter in range(4)
                    )[part[:2] if lane == Lane.BITS_8 else part[0]]
                    for lane in self._lanes - {Lane.BITS_32}
                }
            value = Signal(7, name=f"count_{byte}")
            for choices, wanted in ((to_8, ~i.out_lane[1]), (to_32, i.out_lane[1])):
                with m.If(wanted):
                    with m.Switch(i.lane):
                        for lane, choice in sorted(choices.items()):
                            with m.Case(lane):
                                m.d.comb += value.eq(choice)
            counts.append(value)
        return counts


def _bytes_of(part: Value, parts: int, size: int) -> Value:
    """The bytes of a beat of ``size`` bytes, cut into ``parts``, that are in ``part``."""
    return Cat(part == byte * parts // size for byte in range(size))
