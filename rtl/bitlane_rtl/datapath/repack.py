"""Narrows and widens counts to the lanes of the output. All other results pass unchanged.

It needs no address, because each beat carries the part of the output beat in which its run starts.
"""

from collections.abc import Collection

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Op
from ..streams import ToWrite
from .result_decoder import OUT_LANES, DecodedResult, counts_of, lanes_of_results

__all__ = ["Repack"]


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
    widens
        Whether counts can widen. Needs beats of 32 bits or more.

    Members
    -------
    i
        Results from `ResultDecoder`.
    o
        Beats in the output's lanes. When narrowing, the parts of a run's first beat below
        ``edge.slot`` and those of its last beat behind its end are undefined.
    """

    def __init__(
        self,
        data_width: int,
        lanes: Collection[Lane],
        ops: Collection[Op],
        *,
        widens: bool = True,
    ) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(DecodedResult(data_width))),
                "o": Out(stream.Signature(ToWrite(data_width))),
            }
        )
        self._data_width = data_width
        self._lanes = lanes_of_results(data_width, lanes)
        self._changes_lanes = any(op.counts for op in ops)
        self._widens = widens

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i.p.result, self.o.payload
        if not self._changes_lanes:
            self._pass(m)
            return m
        narrows: Value = self.i.p.narrows
        widens: Value = self.i.p.widens if self._widens else Const(0)
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
        free, load, filling = Signal(), Signal(), Signal()
        error = Signal(reset_less=True)
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            load.eq(self.i.valid & ~i.partial & free),
            self.i.ready.eq(i.partial | (free & whole)),
        ]
        with m.If(free):
            m.d.sync += self.o.valid.eq(self.i.valid & ~i.partial & (done | ~narrows))
        with m.If(load):
            m.d.sync += [
                parts_done.eq(Mux(done, 0, part + 1)),
                ending.eq(self.i.p.end_part == (parts_done + 1)[:3]),
                starts.eq(i.edge.last & done),
                filling.eq(~done & narrows),
                error.eq(i.edge.error | (filling & error)),
            ]

        held_data = Signal(self._data_width, reset_less=True)
        filled = self._part(m, starts, load)
        for byte in range(size):
            # Without `valid`: the next beat overwrites bytes that belong to no beat.
            with m.If(free & filled[byte]):
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
        filled, following_bytes = Signal(size), Signal(size)
        m.d.comb += filled.eq(Mux(starts, self.i.p.first_bytes, following_bytes))
        ratios = {
            lane.bytes // out_lane.bytes
            for lane in self._lanes
            for out_lane in OUT_LANES
            if lane > out_lane
        }
        with m.If(load):
            m.d.sync += following_bytes.eq(-1)
            with m.Switch(self.i.p.last_part):
                for ratio in sorted(ratios):
                    with m.Case(ratio - 1):
                        m.d.sync += following_bytes.eq(filled.rotate_left(size // ratio))
        return filled

    def _byte(self, m: Module, byte: int, part: Value) -> Value:
        """Return ``byte`` of the output; if the beat widens, of ``part`` of the input beat."""
        data, size = self.i.p.result.data, self._data_width // 8
        value = Signal(8, name=f"byte_{byte}")
        m.d.comb += value.eq(data.word_select(byte, 8))
        for lane, widens in (
            (Lane.BITS_8, self.i.p.quarters),
            (Lane.BITS_16, self.i.p.halves),
        ):
            if self._widens and lane in self._lanes:
                with m.If(widens):
                    m.d.comb += value.eq(0)
                    if byte % 4 == 0:
                        # A part has as many counts as an output beat has 32-bit lanes.
                        counts = Array(counts_of(data, lane)[byte // 4 :: size // 4])
                        m.d.comb += value.eq(counts[part[: 2 - lane]])
        return value
