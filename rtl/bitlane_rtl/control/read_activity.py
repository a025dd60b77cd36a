"""The activity of one read port, for the counters. It drives nothing on the port."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import BEATS_PER_BLOCK

__all__ = ["ReadActivity"]


class ReadActivity(wiring.Component):
    """Reports beats, and cycles in which a requested beat does not arrive.

    Latency: 1 cycle, because handshakes complete late in their cycle. Throughput: a handshake of
    each kind a cycle.
    """

    request: In(1)
    """A burst is requested in this cycle."""
    length: In(ceil_log2(BEATS_PER_BLOCK))
    """Beats of that burst, less one."""
    data: In(1)
    """A beat is transferred in this cycle."""
    beat: Out(1)
    """A beat was transferred in the cycle before."""
    stall: Out(1)
    """No beat was, although beats were due. At most 4,095 beats may be due."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        requested = Signal(range(BEATS_PER_BLOCK + 1))
        due = Signal(12)
        m.d.comb += self.stall.eq((due != 0) & ~self.beat)
        m.d.sync += [
            self.beat.eq(self.data),
            requested.eq(Mux(self.request, self.length + 1, 0)),
            due.eq(due + requested - self.beat),
        ]
        return m
