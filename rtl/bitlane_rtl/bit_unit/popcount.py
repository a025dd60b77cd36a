"""Counts the ones of each lane, or adds tests of elements. No count may reach into another lane."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations

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
    sum of tests. An element of 64 bits has two tests, of its halves, which are joined in stage 2.

    Latency: 1 cycle from the inputs to ``o`` and 2 to ``o_64``. Throughput: one word a cycle.

    Members
    -------
    load
        Bit 0: take the inputs at this clock edge; bit 1: move on what was taken before.
    enable
        Count; else all counts are 0.
    lane
        An ``abi.Lane`` out of ``lanes``, no wider than ``width``; else counts are undefined.
    test
        Count ``tests``, not the ones of ``a``.
    tests
        A bit for each byte, as from `LaneTests`.
    joins, negate
        Valid with ``test``: the tests are of halves of 64-bit elements. Count the elements of which
        either test is 1, or with ``negate`` neither. Only with 64-bit lanes.
    a
        The word to count in.
    inside
        The bytes of ``a`` and ``tests`` to count; the others count as 0.
    o
        Counts of the last ``a`` taken, 0 in 64-bit lanes.
    o_64
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
                **({"joins": In(1), "negate": In(1)} if Lane.BITS_64 in self._lanes else {}),
                "a": In(width),
                "inside": In(width // 8),
                "o": Out(width),
                "o_64": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ones = self._saved if getattr(platform, "family", None) == "ecp5" else self._added
        sums = {Lane.BITS_8: [self._count_byte(m, byte, ones) for byte in range(len(self.a) // 8)]}
        selected = {
            lane: register(m, self.load[0], self._is_selected(lane), f"selected_{lane.bits}")
            for lane in sorted(self._lanes)
        }
        for lane in (Lane.BITS_16, Lane.BITS_32):
            if lane.bits > len(self.a):
                break
            parts = sums[Lane(lane - 1)]
            sums[lane] = []
            for low, high in _pairs(parts):
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
                for k, ones in enumerate(self._join(m, sums))
            ]
            sums_64 = [low + high for low, high in _pairs(halves)]
            m.d.comb += self.o_64.eq(_in_lanes(sums_64, Lane.BITS_64))
        return m

    def _join(self, m: Module, sums: Mapping[Lane, Sequence[Value]]) -> list[Value]:
        """Return the ones of 32 bits in stage 2, or in the lower half a test of both halves."""
        joins = register(m, self.load[0], self.test & self.joins, "joins_1")
        joined: list[Value] = []
        for low, (lower, upper) in enumerate(_pairs(sums[Lane.BITS_32])):
            first = Lane.BITS_64.bytes * low
            negates = self.negate & self.inside[first]
            negate = register(m, self.load[0], negates, f"negate_{low}_1")
            halves = (sums[Lane.BITS_8][first + half * Lane.BITS_32.bytes][0] for half in range(2))
            test = Cat(halves).any() ^ negate
            joined += [Mux(joins, test, lower), Mux(joins, 0, upper)]
        return joined

    def _is_selected(self, lane: Lane) -> Value:
        """Return whether to count in ``lane``, one of the lanes that are built."""
        wider = [other for other in self._lanes if other > lane]
        selected = self.enable & at_least(self.lane, lane, self._lanes)
        return selected & ~at_least(self.lane, min(wider), self._lanes) if wider else selected

    def _count_byte(self, m: Module, byte: int, ones: Callable[[Module, int], Value]) -> Signal:
        """Return what ``ones`` returns of ``byte``, in stage 1."""
        # A Mux behind the sum is free: it becomes a reset of the register.
        counted = Mux(self.inside[byte], ones(m, byte), 0)
        return register(m, self.load[0], counted, f"ones_8_{byte}")

    def _added(self, m: Module, byte: int) -> Value:
        """Return the number of ones of ``byte``, or its test if tests are counted: 4 bits."""
        return Mux(self.test, self.tests[byte], tree_sum(self.a.word_select(byte, 8))[:4])

    def _saved(self, m: Module, byte: int) -> Value:
        """Return the same as `_added`, by carry-save additions of three bits.

        They take three LUT4 in a row, a tree of adders four. Each has an input left that makes it
        0, so that the test is one more bit to add, not a multiplexer. This saves 45 LUT4 in full-64
        on ECP5, where this stage bounds the clock, but costs 15 in small-32 on iCE40.
        """
        bits = self.a.word_select(byte, 8)
        parts = [bits[0:3], bits[3:6], bits[6:8]]
        # Signals, so that a simulator computes them once; `twos` have weight 2.
        sums = Signal(3, name=f"sums_{byte}")
        twos = Signal(4, name=f"twos_{byte}")
        m.d.comb += [
            sums.eq(Mux(self.test, 0, Cat(part.xor() for part in parts))),
            twos[:3].eq(Mux(self.test, 0, Cat(*map(_majority, parts[:2]), parts[2].all()))),
            twos[3].eq(_majority(sums)),
        ]
        pairs = Cat(twos[one] & twos[other] for one, other in combinations(range(4), 2))
        low = sums.xor() ^ (self.test & self.tests[byte])
        return Cat(low, twos.xor(), pairs.any() & ~twos.all(), twos.all())


def _pairs(values: Sequence[Value]) -> list[tuple[Value, Value]]:
    """Return each two neighbours."""
    return list(zip(values[::2], values[1::2], strict=True))


def _majority(bits: Value) -> Value:
    """Return whether two of three ``bits`` or more are 1."""
    return (bits[0] & bits[1]) | (bits[2] & (bits[0] | bits[1]))


def _in_lanes(counts: Sequence[Value], lane: Lane) -> Value:
    """Return a word with each of ``counts`` in a lane of its own, zero-extended."""
    return Cat(Cat(count, Const(0, lane.bits - len(count))) for count in counts)
