"""The watchdog of the memory: it reports a wait that takes too long, and stops nothing."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Watchdog"]


class Watchdog(wiring.Component):
    """Counts the cycles in which an answer of the memory is due and no handshake takes place.

    Latency: 0 cycles. Throughput: 1 cycle a cycle.
    """

    bound: In(32)
    """Cycles; 0: no limit."""
    waiting: In(1)
    """An answer is due."""
    progress: In(1)
    """A handshake took place on some port in this cycle."""
    expired: Out(1)
    """This cycle and the ``bound`` cycles before it were all waits."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(32)
        late = Signal()
        m.d.comb += self.expired.eq(late & self.waiting & ~self.progress)
        # The count continues when it is late, so that the long comparison is off the critical path.
        m.d.sync += [
            count.eq(count + 1),
            late.eq(late | ((count >= self.bound) & (self.bound != 0))),
        ]
        with m.If(self.progress | ~self.waiting):
            m.d.sync += [count.eq(1), late.eq(0)]
        return m
