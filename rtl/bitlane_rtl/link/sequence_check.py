"""Decides which requests are the expected ones, which are repetitions, and what to complain of."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import SEQUENCES
from .words import NUMBER_BITS

__all__ = ["Complaint", "SequenceCheck"]


class Complaint(wiring.Signature):
    """Signature of a complaint about dropped frames, from the receiver's side.

    Members
    -------
    valid
        ``expected`` must be reported to the host, because a frame was dropped, the first one since
        the last good frame.
    expected
        Sequence number of the next request; the highest one after reset.
    answered
        The complaint is reported; it ends after this cycle. It also ends when the expected request
        arrives.
    """

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "expected": Out(range(SEQUENCES)), "answered": In(1)})


class SequenceCheck(wiring.Component):
    """Compares the numbers of requests with the expected one, as `abi.frames` specifies.

    Parameters
    ----------
    counted
        Only a request that was accepted after the last one with ``any`` has a repetition, as
        `abi.datagrams` specifies.

    Latency: 1 cycle. Throughput: a request every 2 cycles.
    """

    load: In(1)
    """Compare ``number``. The next one is compared after ``good`` or ``dropped``."""
    number: In(range(SEQUENCES))
    """The number of a request."""
    any: In(1)
    """Accept that request with any number. With ``load`` or later."""
    repeated: Out(1)
    """The request is a repetition."""
    out_of_turn: Out(1)
    """The request must be dropped."""
    good: In(1)
    """The request is accepted. If it is not repeated, the next number is expected."""
    dropped: In(1)
    """A request is dropped."""
    complaint: Out(Complaint())
    """The complaint about dropped requests."""

    def __init__(self, *, counted: bool = False) -> None:
        self._counted = counted
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The complement of the expected number: a subtraction would cost inverters on iCE40.
        complement = Signal(NUMBER_BITS)
        following = Signal(NUMBER_BITS, reset_less=True)  # the same after the request
        ahead = Signal(NUMBER_BITS)
        m.d.comb += [
            ahead.eq(self.number + complement + 1),
            self.complaint.expected.eq(~complement),
        ]
        with m.If(self.load):
            m.d.sync += following.eq(~(self.number + 1))
        behind = self._is_counted(m, ahead) if self._counted else ahead[-1]
        with m.If(self.load | self.any):
            m.d.sync += [
                self.repeated.eq(self.load & ~self.any & behind),
                self.out_of_turn.eq(self.load & ~self.any & ahead.any() & ~behind),
            ]
        with m.If(self.good & ~self.repeated):
            m.d.sync += complement.eq(following)

        complained = Signal()
        with m.If(self.complaint.answered | (self.good & ~self.repeated)):
            m.d.sync += self.complaint.valid.eq(0)
        with m.If(self.dropped & ~complained):
            m.d.sync += self.complaint.valid.eq(1)
        with m.If(self.dropped):
            m.d.sync += complained.eq(1)
        with m.If(self.good):
            m.d.sync += complained.eq(0)
        return m

    def _is_counted(self, m: Module, ahead: Signal) -> Value:
        """Return whether a request that is ``ahead`` is one of those that were accepted."""
        count = Signal(NUMBER_BITS)  # of those, REPETITIONS at most
        first = Signal(reset_less=True)
        with m.If(self.load | self.any):
            m.d.sync += first.eq(self.any)
        with m.If(self.good & ~self.repeated):
            m.d.sync += count.eq(Mux(first, 0, count + ~count[-1]))
        return (ahead + count)[NUMBER_BITS]
