"""Adds the counts of all beats of a run. Must never add the counts of another run to its sum."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import Lane
from ..primitives import tree_sum

__all__ = ["RowSum"]

_SUM_BITS = Lane.BITS_32.bits


class RowSum(wiring.Component):
    """The sum, modulo 2**32, of the counts of a run's beats so far.

    Its register is parallel to the last one of the pipeline, so that a sum takes no further cycle.

    Parameters
    ----------
    data_width : int
        Bits of a beat.
    lane : Lane
        The lane of the counts, no wider than a beat.

    Members
    -------
    take
        The other inputs are those of a beat, and are taken at this clock edge.
    sums
        The beat belongs to a run that is summed.
    more
        The beat is not the last of that run. Must be 0 if ``sums`` is 0.
    counts
        The counts of the beat, zero-extended in their lanes.
    o
        The sum up to and including the last beat that was taken; 0 if that beat is not summed.

    Latency: 1 cycle. Throughput: a beat a cycle.
    Bound of the clock: the counts of a beat -> their sum -> the sum of the run.
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
        bits, step = self._lane.bits.bit_length(), self._lane.bits
        beat = tree_sum(self.counts[low : low + bits] for low in range(0, len(self.counts), step))
        following = Signal(_SUM_BITS)
        # A Mux behind the adder is free for most bits: it becomes a reset of their registers.
        m.d.comb += [following.eq(Mux(begins, beat, total + beat)), self.o.eq(total)]
        with m.If(self.take):
            m.d.sync += [total.eq(Mux(self.sums, following, 0)), begins.eq(~self.more)]
        return m
