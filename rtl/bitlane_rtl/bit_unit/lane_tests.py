"""Tests whether elements have a one. A test must never depend on the bytes of another element."""

from collections.abc import Collection

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane
from ..primitives import register
from .lanes import at_least

__all__ = ["LaneTests"]


class LaneTests(wiring.Component):
    """The test of each element of a word, from the ones that `Popcount` counts in its bytes.

    An element of two beats is tested with its second beat. A first beat in error is an element
    alone, because the second may never arrive.

    Parameters
    ----------
    width, lanes
        As those of `Popcount`.
    pairs
        Whether elements of 64 bits can be two beats, the low half first.

    Members
    -------
    load : ``In(2)``
        As that of `Popcount`.
    valid : ``In(2)``
        Whether the inputs, and what was taken before, are those of a beat. Only with ``pairs``.
    error : ``In(1)``
        The beat could not be read. Only with ``pairs``.
    lane : ``In(2)``
        An ``abi.Lane`` out of ``lanes``, or of 64 bits with ``pairs``.
    test, negate : ``In(1)``
        Test whether elements have a one, or with both, whether they have none; else ``o`` is 0.
    ones : ``In(ArrayLayout(4, width / 8))``
        The ones in each byte of the word that was taken.
    o : ``Out(width / 8)``
        Bit k: the test of the element whose lowest byte is byte k; 0 if byte k is not the lowest.

    Latency: 0 cycles from ``ones``, 1 from the other inputs. Throughput: one word a cycle.
    """

    def __init__(self, width: int, lanes: Collection[Lane], *, pairs: bool) -> None:
        self._lanes = frozenset(lanes)
        self._pairs = pairs
        super().__init__(
            {
                "load": In(2),
                **({"valid": In(2), "error": In(1)} if pairs else {}),
                "lane": In(2),
                "test": In(1),
                "negate": In(1),
                "ones": In(data.ArrayLayout(4, width // 8)),
                "o": Out(width // 8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        found: list[Value] = [byte.any() for byte in self.ones]
        whole: Value = self.test
        if self._pairs:
            first = self._first(m)
            whole = whole & ~first
            found[0] |= self._held(m, first, found)
        tests = register(m, self.load[0], whole, "tests")
        negates = register(m, self.load[0], self.negate, "negates")
        lowest = [tests] * len(found)
        for lane in (Lane.BITS_16, Lane.BITS_32, Lane.BITS_64):
            if max(self._lanes) < lane:
                break
            # Of a word that is tested also whether its lane is narrower than `lane`.
            narrow = self.test & ~at_least(self.lane, lane, self._lanes)
            narrow = register(m, self.load[0], narrow, f"below_{lane.bits}")
            for byte in range(0, len(found), lane.bytes):
                upper = byte + lane.bytes // 2
                found[byte] |= found[upper] & ~narrow
                lowest[upper] = narrow
        m.d.comb += self.o.eq(
            Cat(low & (one ^ negates) for low, one in zip(lowest, found, strict=True))
        )
        return m

    def _first(self, m: Module) -> Value:
        """Return whether the beat is the first of an element of two."""
        first, second = Signal(), Signal()
        m.d.comb += first.eq(self.test & (self.lane == Lane.BITS_64) & ~second & ~self.error)
        with m.If(self.load[0] & self.valid[0]):
            m.d.sync += second.eq(first)
        return first

    def _held(self, m: Module, first: Value, found: list[Value]) -> Value:
        """Return whether the beat is the second of an element, and the first beat has a one."""
        was_first = register(m, self.load[0], first, "was_first")
        held = Signal()
        with m.If(self.load[1] & self.valid[1]):
            m.d.sync += held.eq(was_first & Cat(found).any())
        return held
