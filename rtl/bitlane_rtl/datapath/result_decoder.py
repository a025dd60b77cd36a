"""Decodes how the repacking changes each result. It stores nothing."""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane, Op
from ..streams import Result

__all__ = ["OUT_LANES", "DecodedResult", "ResultDecoder", "counts_of", "lanes_of_results"]

OUT_LANES = (Lane.BITS_8, Lane.BITS_32)
"""The lanes that the output of counts can have."""


class DecodedResult(data.StructLayout):
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


class ResultDecoder(wiring.Component):
    """Decodes how `Repack` changes each result, and narrows counts. Stores nothing.

    Parameters
    ----------
    data_width, lanes, ops
        Bits of a beat, and lanes and operations of the bit unit.

    Members
    -------
    i
        Results of the bit unit. If ``lane`` and ``out_lane`` differ, each lane holds a count of its
        ones, zero-extended, and ``out_lane`` is 8 or 32 bits.
    o
        Results for `Repack`.

    Latency: 0 cycles. Throughput: a result a cycle.
    """

    def __init__(self, data_width: int, lanes: Collection[Lane], ops: Collection[Op]) -> None:
        self._data_width = data_width
        self._lanes = lanes_of_results(data_width, lanes)
        self._counts = any(op.counts for op in ops)
        super().__init__(
            {
                "i": In(stream.Signature(Result(data_width))),
                "o": Out(stream.Signature(DecodedResult(data_width))),
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
                for out_lane in OUT_LANES:
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
        counts = counts_of(self.i.p.data, lane)
        narrowed = Cat(Cat(count, Const(0, 32))[: out_lane.bits] for count in counts)
        return narrowed.replicate(lane.bytes // out_lane.bytes)


def counts_of(data: Value, lane: Lane) -> list[Value]:
    """Return the counts of all lanes, without the bits that are 0 in every count."""
    # A lane as wide as the beat can hold the count of a pair of beats, which is up to 64.
    bits = 7 if lane.bits == len(data) else lane.bits.bit_length()
    return [data[low : low + bits] for low in range(0, len(data), lane.bits)]


def lanes_of_results(data_width: int, lanes: Collection[Lane]) -> frozenset[Lane]:
    """Return the lanes of results: in beats of 32 bits, counts of 64-bit lanes are 32 bits wide."""
    widest = Lane(min(data_width, 64).bit_length() - 4)
    return frozenset(min(lane, widest) for lane in lanes)


def _bytes_of(part: Value, parts: int, size: int) -> Value:
    """Return which bytes of a beat of ``size`` bytes are in ``part``, one of ``parts``."""
    return Cat(part == byte * parts // size for byte in range(size))
