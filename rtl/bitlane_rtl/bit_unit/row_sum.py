"""Adds the counts of all beats of a run. Must never let one run's sum reach into another's.

Of a beat's position in its run it uses only whether more of the run follows.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane

__all__ = ["RowSum"]

_SUM_BITS = Lane.BITS_32.bits


class RowSum(wiring.Component):
    """The sum, modulo 2**32, of the counts of a run's beats so far.

    It is parallel to the last register of the bit unit, so that summing costs no cycle.

    Parameters
    ----------
    data_width : int
        Bits of a beat.
    lane : Lane
        The lane that counts stand in the low bits of, no wider than a beat.

    Members
    -------
    take : ``In(1)``
        Take the inputs, a beat's, at this clock edge.
    sums : ``In(1)``
        The beat belongs to a run that is summed.
    more : ``In(1)``
        The beat is not the last of that run. Must be 0 if ``sums`` is 0.
    counts : ``In(data_width)``
        Its counts, zero-extended in their lanes.
    o : ``Out(32)``
        The sum up to the beat that was taken last, or 0 if that is not summed.

    Latency: 1 cycle. Throughput: a beat a cycle.
    Bound of the clock: the counts of a beat -> their sum -> the run's.
    """

    def __init__(self, data_width: int, lane: Lane) -> None:
        self._lane = lane
        super().__init__(
            {
                "take": In(1),
                "sums": In(1),
                "more": In(1),
                "counts": In(data_width),
                "o": Out(_SUM_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        begins = Signal(init=1)
        total = Signal(_SUM_BITS, reset_less=True)
        beat, following = self._beat(), Signal(_SUM_BITS)
        # Chosen behind the adder: most bits have it from their register's reset, for nothing.
        m.d.comb += [following.eq(Mux(begins, beat, total + beat)), self.o.eq(total)]
        with m.If(self.take):
            m.d.sync += [total.eq(Mux(self.sums, following, 0)), begins.eq(~self.more)]
        return m

    def _beat(self) -> Value:
        """The ones of the beat, by a balanced tree of additions."""
        bits = self._lane.bits.bit_length()
        sums: list[Value] = [
            self.counts[low : low + bits] for low in range(0, len(self.counts), self._lane.bits)
        ]
        while len(sums) > 1:
            sums = [one + other for one, other in zip(sums[::2], sums[1::2], strict=True)]
        return sums[0]
