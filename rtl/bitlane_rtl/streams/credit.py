"""The credits of a FIFO: a sender with a credit needs no back-pressure."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..counter import step

__all__ = ["Credit"]


class Credit(wiring.Component):
    """Lets no more payloads on their way than a queue has room for.

    What comes between whoever takes a credit for a payload and the queue needs no ``ready`` then.

    Parameters
    ----------
    depth
        Payloads that the queue holds: a power of two.

    Members
    -------
    taken : ``In(1)``
        A payload sets out, in this cycle. Only while ``room``.
    returned : ``In(1)``
        The queue gave a payload away, in this cycle.
    room : ``Out(1)``
        A payload may set out. From a register.

    Latency: a credit that is returned can be taken 2 cycles later. Throughput: a credit a cycle, if
    no more than ``depth - 2`` cycles lie between ``taken`` and the payload's ``returned``.
    Area: 8 LUT4 and 6 flip-flops at depth 16.
    """

    taken: In(1)
    returned: In(1)
    room: Out(1)

    def __init__(self, depth: int) -> None:
        self._depth = depth
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        under_way = Signal(range(self._depth + 1))
        returned = Signal()  # a register, because `self.returned` arrives late in its cycle
        m.d.sync += returned.eq(self.returned)
        m.d.comb += self.room.eq(~under_way[-1])
        step(m, under_way, self.taken, returned)
        return m
