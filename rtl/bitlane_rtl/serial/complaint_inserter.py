"""Inserts the receiver's complaints between the executor's answers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import INTERRUPT_BIT, Answer
from ..link import SIZE_BITS, AnswerWord, Complaint

__all__ = ["ComplaintInserter"]


class ComplaintInserter(wiring.Component):
    """Passes on answers, and answers complaints between them.

    Latency: 0 cycles. Throughput: a word a cycle. Area: 42 LUT4 and 3 flip-flops on iCE40.
    """

    i: In(stream.Signature(AnswerWord))
    """Answers. ``ready`` depends on ``o.ready`` alone behind the first word of an answer."""
    complaint: In(Complaint())
    """Has priority over an answer that is not yet offered."""
    interrupt: In(1)
    """Level of the interrupt line, which is sampled before the answer to a complaint is offered."""
    o: Out(stream.Signature(AnswerWord))
    """Answers to requests and to complaints."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o, complaint = self.i, self.o, self.complaint
        between = Signal(init=1)  # two answers
        waits = Signal()  # an answer that is offered
        interrupt = Signal(reset_less=True)
        complains = between & complaint.valid & ~waits
        word = Cat(
            complaint.expected[:8],
            Const(Answer.EXPECTED, INTERRUPT_BIT),
            interrupt,
            Const(0, SIZE_BITS),
            complaint.expected[8:],
        )
        m.d.comb += [
            o.valid.eq(i.valid | complains),
            o.p.data.eq(Mux(complains, word, i.p.data)),
            o.p.last.eq(i.p.last | complains),
            i.ready.eq(o.ready & ~complains),
            complaint.answered.eq(o.ready & complains),
        ]
        m.d.sync += waits.eq(i.valid & ~i.ready & ~complains)
        with m.If(~complains):
            m.d.sync += interrupt.eq(self.interrupt)
        with m.If(o.valid & o.ready):
            m.d.sync += between.eq(o.p.last)
        return m
