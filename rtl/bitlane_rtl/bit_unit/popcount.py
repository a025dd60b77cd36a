"""Counts the ones of each lane. Must never let a count reach into another lane."""

from collections.abc import Collection, Iterable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane
from .lanes import at_least

__all__ = ["Popcount"]


class Popcount(wiring.Component):
    """Ones in each lane of ``width`` bits, in the low bits of the lane; the rest of it is 0.

    One tree for all lanes, which adds the counts of bytes, of pairs of bytes, and so on, with no
    gate in its way: lanes choose among the sums behind it. It is cut by registers behind the counts
    of bytes and, since four additions in a row are the slowest path of a whole engine, of 32 bits.

    Latency: 1 cycle from the inputs to ``o`` and 2 to ``o_64``. Throughput: one word a cycle.

    Members
    -------
    load : ``In(2)``
        Bit 0: take the inputs at this clock edge; bit 1: move on what was taken before.
    enable : ``In(1)``
        Whether to count; else all counts are 0.
    lane : ``In(2)``
        An ``abi.Lane`` out of ``lanes``, no wider than ``width``; else counts are undefined.
    a : ``In(width)``
        Word whose ones are counted.
    inside : ``In(width / 8)``
        Bytes of ``a`` to count; the others count as 0.
    o : ``Out(width)``
        Counts of the last ``a`` taken, 0 in 64-bit lanes.
    o_64 : ``Out(width)``
        Counts of the ``a`` before in 64-bit lanes, 0 in others.
    """

    def __init__(self, width: int, lanes: Collection[Lane]) -> None:
        self._lanes = frozenset(lane for lane in lanes if lane.bits <= width)
        if not self._lanes:
            raise ValueError(f"lanes: none of them fits into {width} bits")
        super().__init__(
            {
                "load": In(2),
                "enable": In(1),
                "lane": In(2),
                "a": In(width),
                "inside": In(width // 8),
                "o": Out(width),
                "o_64": Out(width),
            }
        )

    def _is_lane(self, lane: Lane) -> Value:
        """Whether counting in ``lane``, which is built."""
        chosen = self.enable & at_least(self.lane, lane, self._lanes)
        wider = [other for other in self._lanes if other > lane]
        return chosen & ~at_least(self.lane, min(wider), self._lanes) if wider else chosen

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sums = {Lane.BITS_8: [self._ones(m, byte) for byte in range(len(self.a) // 8)]}
        shown = {
            lane: self._held(m, 0, self._is_lane(lane), f"shown_{lane.bits}")
            for lane in sorted(self._lanes)
        }
        for lane in (Lane.BITS_16, Lane.BITS_32):
            parts = sums[Lane(lane - 1)]
            sums[lane] = []
            for low, high in zip(parts[::2], parts[1::2], strict=True):
                total = Signal(len(low) + 1, name=f"ones_{lane.bits}_{len(sums[lane])}")
                m.d.comb += total.eq(low + high)
                sums[lane].append(total)
        counts = [
            Cat(_extend(Mux(shown[lane], ones, 0), lane.bits) for ones in sums[lane])
            for lane in shown
            if lane < Lane.BITS_64
        ]
        m.d.comb += self.o.eq(_any_of(counts))
        if Lane.BITS_64 in self._lanes:
            held = [
                self._held(m, 1, Mux(shown[Lane.BITS_64], ones, 0), f"held_32_{half}")
                for half, ones in enumerate(sums[Lane.BITS_32])
            ]
            wide = zip(held[::2], held[1::2], strict=True)
            m.d.comb += self.o_64.eq(Cat(_extend(low + high, 64) for low, high in wide))
        return m

    def _ones(self, m: Module, byte: int) -> Value:
        """The ones of a byte, a cycle late."""
        # Behind the sum what is outside is a reset of the register, which has one to spare.
        ones = Mux(self.inside[byte], _sum(self.a.word_select(byte, 8))[:4], 0)
        return self._held(m, 0, ones, f"ones_8_{byte}")

    def _held(self, m: Module, stage: int, value: Value, name: str) -> Signal:
        """A register that takes ``value`` with ``load[stage]``."""
        held = Signal(len(value), name=name, reset_less=True)
        with m.If(self.load[stage]):
            m.d.sync += held.eq(value)
        return held


def _sum(values: Iterable[Value]) -> Value:
    """The sum of ``values``, as many as a power of two, by a balanced tree of additions."""
    sums = list(values)
    while len(sums) > 1:
        sums = [one + other for one, other in zip(sums[::2], sums[1::2], strict=True)]
    return sums[0]


def _any_of(words: Iterable[Value]) -> Value:
    result: Value = Const(0)
    for word in words:
        result |= word
    return result


def _extend(value: Value, width: int) -> Value:
    return Cat(value, Const(0, width - len(value)))
