"""The credits of a FIFO: a sender with a credit needs no back-pressure."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..primitives import step

__all__ = ["Credit"]


class Credit(wiring.Component):
    """A counter that limits the payloads in flight to those that a FIFO can hold.

    The sender takes a credit for each payload, and the FIFO returns it when the payload leaves. So
    the units between the sender and the FIFO need no ``ready``.

    Parameters
    ----------
    depth
        Payloads that the FIFO holds: a power of two.

    Latency: a credit that is returned can be taken 2 cycles later. Throughput: a credit a cycle, if
    no more than ``depth - 2`` cycles lie between ``taken`` and the payload's ``returned``.
    Area: 8 LUT4 and 6 flip-flops at depth 16.
    """

    taken: In(1)
    """A payload is sent in this cycle. Allowed only while ``room`` is 1."""
    returned: In(1)
    """A payload leaves the FIFO in this cycle."""
    room: Out(1)
    """A payload may be sent. Depends on registers alone."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        in_flight = Signal(range(self._depth + 1))
        returned = Signal()  # a register, because `self.returned` arrives late in its cycle
        m.d.sync += returned.eq(self.returned)
        m.d.comb += self.room.eq(~in_flight[-1])
        step(m, in_flight, self.taken, returned)
        return m
