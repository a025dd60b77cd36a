"""Tests whether elements have a one. A test must never depend on the bits of another element."""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane
from .lanes import at_least

__all__ = ["LaneTests"]


class LaneTests(wiring.Component):
    """The test of each element of a word: whether it has a one, or whether it has none.

    An element of 64 bits in one word is tested as two of 32 bits, which `Popcount` joins: here the
    OR of eight bytes would bound the clock. An element of two words is tested with its second word.
    If the first of them could not be read, the second may never arrive: nothing behind it is
    written, and a reset must follow.

    Parameters
    ----------
    width, lanes
        Bits of a word, and the lanes to build, no wider than it.
    pairs
        Whether elements of 64 bits can be two words, the low half first.

    Members
    -------
    a
        The word.
    lane
        An ``abi.Lane`` out of ``lanes``, or with ``pairs`` that of 64 bits.
    negate
        Test whether elements have no one.
    take, test
        The word is taken at this clock edge; it is one to test. Only with ``pairs``.
    o
        Bit k: the test of the element whose lowest byte is byte k; 0 if byte k is not the lowest.

    Latency: 0 cycles. Throughput: one word a cycle.
    """

    def __init__(self, width: int, lanes: Collection[Lane], *, pairs: bool) -> None:
        self._lanes = frozenset(lanes)
        self._pairs = pairs
        super().__init__(
            {
                "a": In(width),
                "lane": In(2),
                "negate": In(1),
                **({"take": In(1), "test": In(1)} if pairs else {}),
                "o": Out(width // 8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = len(self.o)
        ones = [self.a.word_select(byte, 8).any() for byte in range(size)]
        found: list[Value] = list(ones)
        lowest: list[Value] = [Const(1)] * size
        for lane in (Lane.BITS_16, Lane.BITS_32):
            if max(self._lanes) < lane:
                break
            wide = at_least(self.lane, lane, self._lanes)
            half = lane.bytes // 2
            for low in range(0, size, lane.bytes):
                upper = low + half
                found[low] |= Cat(ones[upper : upper + half]).any() & wide
                lowest[upper] = ~wide
        if self._pairs:
            self._pair(m, found, lowest)
        m.d.comb += self.o.eq(
            Cat(low & (one ^ self.negate) for low, one in zip(lowest, found, strict=True))
        )
        return m

    def _pair(self, m: Module, found: list[Value], lowest: list[Value]) -> None:
        """Test an element of two words with its second word, and with what the first one had."""
        first = Signal()
        second = Signal()
        held = Signal()
        m.d.comb += first.eq(self.test & (self.lane == Lane.BITS_64) & ~second)
        with m.If(self.take):
            m.d.sync += [second.eq(first), held.eq(first & found[0])]
        found[0] |= held
        lowest[0] = ~first
