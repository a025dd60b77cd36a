"""Counts the ones of each lane, or adds tests of elements. No count may reach into another lane."""

from collections.abc import Collection, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane
from ..primitives import register, tree_sum
from .lanes import at_least

__all__ = ["Popcount"]


class Popcount(wiring.Component):
    """The ones in each lane of ``width`` bits, in the low bits of the lane; the rest of it is 0.

    One tree of additions serves all lanes. It adds the counts of bytes, of pairs of bytes, and so
    on, and multiplexers behind the tree select the counts of a lane. Registers cut the tree behind
    the counts of bytes and behind the counts of 32 bits: four additions in a row would be the
    slowest path of a whole engine.

    A test takes the place of the count of its element's lowest byte, and no other byte of the
    element counts. So the tree gives the test in the lane of the element, and in wider lanes the
    sum of tests.

    Latency: 1 cycle from the inputs to ``o`` and 2 to ``o_64``. Throughput: one word a cycle.

    Members
    -------
    load : ``In(2)``
        Bit 0: take the inputs at this clock edge; bit 1: move on what was taken before.
    enable : ``In(1)``
        Count; else all counts are 0.
    lane : ``In(2)``
        An ``abi.Lane`` out of ``lanes``, no wider than ``width``; else counts are undefined.
    test : ``In(1)``
        Count ``tests``, not the ones of ``a``.
    tests : ``In(width / 8)``
        A bit for each byte, as from `LaneTests`.
    a : ``In(width)``
        The word to count in.
    inside : ``In(width / 8)``
        The bytes of ``a`` and ``tests`` to count; the others count as 0.
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
                "test": In(1),
                "tests": In(width // 8),
                "a": In(width),
                "inside": In(width // 8),
                "o": Out(width),
                "o_64": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sums = {Lane.BITS_8: [self._count_byte(m, byte) for byte in range(len(self.a) // 8)]}
        selected = {
            lane: register(m, self.load[0], self._is_selected(lane), f"selected_{lane.bits}")
            for lane in sorted(self._lanes)
        }
        for lane in (Lane.BITS_16, Lane.BITS_32):
            if lane.bits > len(self.a):
                break
            parts = sums[Lane(lane - 1)]
            sums[lane] = []
            for low, high in zip(parts[::2], parts[1::2], strict=True):
                total = Signal(len(low) + 1, name=f"ones_{lane.bits}_{len(sums[lane])}")
                m.d.comb += total.eq(low + high)
                sums[lane].append(total)
        counts: Value = Const(0)
        for lane in sorted(self._lanes - {Lane.BITS_64}):
            counts |= _in_lanes([Mux(selected[lane], ones, 0) for ones in sums[lane]], lane)
        m.d.comb += self.o.eq(counts)
        if Lane.BITS_64 in self._lanes:
            halves = [
                register(m, self.load[1], Mux(selected[Lane.BITS_64], ones, 0), f"ones_32_{k}_2")
                for k, ones in enumerate(sums[Lane.BITS_32])
            ]
            pairs = zip(halves[::2], halves[1::2], strict=True)
            m.d.comb += self.o_64.eq(_in_lanes([low + high for low, high in pairs], Lane.BITS_64))
        return m

    def _is_selected(self, lane: Lane) -> Value:
        """Return whether to count in ``lane``, one of the lanes that are built."""
        wider = [other for other in self._lanes if other > lane]
        selected = self.enable & at_least(self.lane, lane, self._lanes)
        return selected & ~at_least(self.lane, min(wider), self._lanes) if wider else selected

    def _count_byte(self, m: Module, byte: int) -> Signal:
        """Return the ones of ``byte``, in stage 1."""
        ones = tree_sum(self.a.word_select(byte, 8))[:4]
        ones = Mux(self.test, self.tests[byte], ones)
        # A Mux behind the sum is free: it becomes a reset of the register.
        return register(m, self.load[0], Mux(self.inside[byte], ones, 0), f"ones_8_{byte}")


def _in_lanes(counts: Sequence[Value], lane: Lane) -> Value:
    """Return a word with each of ``counts`` in a lane of its own, zero-extended."""
    return Cat(Cat(count, Const(0, lane.bits - len(count))) for count in counts)
