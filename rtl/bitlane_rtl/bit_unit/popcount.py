"""Counts the ones of each lane, or tests whether it has any. Lanes must never reach into others."""

from collections.abc import Collection, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane
from ..primitives import register, tree_sum
from .lane_tests import LaneTests
from .lanes import at_least

__all__ = ["Popcount"]


class Popcount(wiring.Component):
    """The ones in each lane of ``width`` bits, in the low bits of the lane; the rest of it is 0.

    One tree of additions serves all lanes. It adds the counts of bytes, of pairs of bytes, and so
    on, and multiplexers behind the tree select the counts of a lane. Registers cut the tree behind
    the counts of bytes and behind the counts of 32 bits: four additions in a row would be the
    slowest path of a whole engine.

    Tests need no tree: they go the way of counts of up to 32 bits. A sum of tests is counted in the
    widest of ``lanes``, as a sum of counts.

    Latency: 1 cycle from the inputs to ``o`` and 2 to ``o_64``. Throughput: one word a cycle.

    Parameters
    ----------
    width, lanes
        Bits of a word, and the lanes to build.
    pairs
        Whether elements of 64 bits can be two words, the low half first. Only tests need to know.

    Members
    -------
    load : ``In(2)``
        Bit 0: take the inputs at this clock edge; bit 1: move on what was taken before.
    enable : ``In(1)``
        Count; else all counts are 0.
    lane : ``In(2)``
        An ``abi.Lane`` out of ``lanes``, no wider than ``width``; else counts are undefined. With
        ``pairs``, it may be that of 64 bits; counts are those of 32 bits then.
    sums : ``In(1)``
        Count in the widest of ``lanes``; tests are those of elements of ``lane``, added up.
    test, negate : ``In(1)``
        Test whether elements have a one, or with both, whether they have none. ``negate`` is 0
        without ``test``, and ``test`` is 0 without ``enable``.
    valid, error : ``In(2)``, ``In(1)``
        As those of `LaneTests`. Only with ``pairs``.
    a : ``In(width)``
        The word to count in.
    inside : ``In(width / 8)``
        The bytes of ``a`` to count and test; the others count as 0, and so do tests of them.
    o : ``Out(width)``
        Counts of the last ``a`` taken, 0 in 64-bit lanes; or its tests. Undefined if these are
        summed in 64-bit lanes.
    o_64 : ``Out(width)``
        Counts of the ``a`` before in 64-bit lanes, or sums of its tests there; 0 in other lanes.
    """

    def __init__(self, width: int, lanes: Collection[Lane], *, pairs: bool = False) -> None:
        self._lanes = frozenset(lane for lane in lanes if lane.bits <= width)
        self._pairs = pairs
        if not self._lanes:
            raise ValueError(f"lanes: none of them fits into {width} bits")
        super().__init__(
            {
                "load": In(2),
                "enable": In(1),
                "lane": In(2),
                "sums": In(1),
                "test": In(1),
                "negate": In(1),
                **({"valid": In(2), "error": In(1)} if pairs else {}),
                "a": In(width),
                "inside": In(width // 8),
                "o": Out(width),
                "o_64": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sums = {Lane.BITS_8: [self._count_byte(m, byte) for byte in range(len(self.a) // 8)]}
        tests = self._test(m, sums[Lane.BITS_8])
        summed = register(m, self.load[0], self.sums, "summed")
        selected = {
            lane: register(m, self.load[0], self._is_selected(lane), f"selected_{lane.bits}")
            for lane in sorted(self._lanes)
        }
        for lane in (Lane.BITS_16, Lane.BITS_32):
            parts = sums[Lane(lane - 1)]
            sums[lane] = []
            for low, high in zip(parts[::2], parts[1::2], strict=True):
                total = Signal(len(low) + 1, name=f"ones_{lane.bits}_{len(sums[lane])}")
                m.d.comb += total.eq(low + high)
                sums[lane].append(total)
        counts: Value = Const(0)
        for lane in sorted(self._lanes - {Lane.BITS_64}):
            counts |= _in_lanes([Mux(selected[lane], ones, 0) for ones in sums[lane]], lane)
        # Registers cut sums of 64 bits behind those of 32 bits.
        widest = max(self._lanes)
        totals = self._totals(tests, min(widest, Lane.BITS_32))
        tested = _in_lanes(tests, Lane.BITS_8)
        if widest < Lane.BITS_64:
            tested = Mux(summed, _in_lanes(totals, widest), tested)
        m.d.comb += self.o.eq(counts | tested)
        if Lane.BITS_64 in self._lanes:
            halves = [
                register(
                    m,
                    self.load[1],
                    Mux(selected[Lane.BITS_64], ones, 0) | Mux(summed, total, 0),
                    f"ones_32_{k}_2",
                )
                for k, (ones, total) in enumerate(zip(sums[Lane.BITS_32], totals, strict=True))
            ]
            pairs = zip(halves[::2], halves[1::2], strict=True)
            m.d.comb += self.o_64.eq(_in_lanes([low + high for low, high in pairs], Lane.BITS_64))
        return m

    def _is_selected(self, lane: Lane) -> Value:
        """Return whether to count in ``lane``, one of the lanes that are built."""
        wider = [other for other in self._lanes if other > lane]
        counted = Mux(self.sums, max(self._lanes), self.lane)
        selected = self.enable & ~self.test & at_least(counted, lane, self._lanes)
        return selected & ~at_least(counted, min(wider), self._lanes) if wider else selected

    def _count_byte(self, m: Module, byte: int) -> Signal:
        """Return the ones of ``byte``, in stage 1."""
        # A Mux behind the sum is free: it becomes a reset of the register. A byte outside must not
        # count as an element of zeros.
        ones = tree_sum(self.a.word_select(byte, 8))[:4]
        return register(
            m, self.load[0], Mux(self.inside[byte], ones, self.negate), f"ones_8_{byte}"
        )

    def _test(self, m: Module, ones: Sequence[Signal]) -> Signal:
        """Return the tests of elements, each at the lowest byte of its lane, in stage 2."""
        m.submodules.tests = tests = LaneTests(len(self.a), self._lanes, pairs=self._pairs)
        m.d.comb += [
            tests.load.eq(self.load),
            tests.lane.eq(self.lane),
            tests.test.eq(self.test),
            tests.negate.eq(self.negate),
            tests.ones.eq(Cat(ones)),
        ]
        if self._pairs:
            m.d.comb += [tests.valid.eq(self.valid), tests.error.eq(self.error)]
        return tests.o

    @staticmethod
    def _totals(tests: Signal, lane: Lane) -> list[Value]:
        """Return how many of ``tests`` are 1 in each ``lane``."""
        return [
            tree_sum(tests[byte : byte + lane.bytes]) for byte in range(0, len(tests), lane.bytes)
        ]


def _in_lanes(counts: Sequence[Value], lane: Lane) -> Value:
    """Return a word with each of ``counts`` in a lane of its own, zero-extended."""
    return Cat(Cat(count, Const(0, lane.bits - len(count))) for count in counts)
