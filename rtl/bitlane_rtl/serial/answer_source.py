"""Puts the bytes of an answer in order: number, status, data. Framing is done elsewhere."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi.frames import (
    HELLO_BYTES,
    INTERRUPT_BIT,
    LINK_VERSION,
    SEQUENCES,
    Answer,
)
from .byte_counter import SIZE_BITS
from .transmitter import AnswerByte

__all__ = ["AnswerSource"]


class AnswerSource(wiring.Component):
    """Outputs an answer, one byte at a time.

    Parameters
    ----------
    receive_bytes
        RECEIVE_BYTES of the answer to a HELLO.

    Members
    -------
    send_number, send_status, send_byte : ``In(1)``
        Output SEQUENCE, the status or a byte of data. Held until ``sent``.
    sent : ``Out(1)``
        The byte is transferred in this cycle.
    more : ``Out(1)``
        Another byte of the answer follows this one.
    number : ``In(range(SEQUENCES))``
        SEQUENCE to output.
    complained, refused : ``In(1)``
        The status to output is EXPECTED, or else REFUSED.
    to_memory : ``In(1)``
        The data is ``memory_byte``.
    minus_left : ``In(SIZE_BITS)``
        Minus the number of bytes of data behind the one that is output.
    done : ``In(1)``
        No byte of data is behind the one that is output.
    hello : ``In(1)``
        The request is a HELLO.
    interrupt : ``In(1)``
        Level of the interrupt line; the last one with ``send_number`` is reported.
    memory_byte : ``In(8)``
        Data of a READ of the memory.
    word_byte : ``In(8)``; shift_word : ``Out(1)``
        All other data. ``shift_word``: the word's next byte must follow in the next cycle.
    o : ``Out(stream.Signature(AnswerByte))``
        ``ready`` must be 1 with ``send_byte``.

    Latency: 0 cycles. Throughput: a byte a cycle.
    """

    send_number: In(1)
    send_status: In(1)
    send_byte: In(1)
    sent: Out(1)
    more: Out(1)
    number: In(range(SEQUENCES))
    complained: In(1)
    refused: In(1)
    to_memory: In(1)
    minus_left: In(SIZE_BITS)
    done: In(1)
    hello: In(1)
    interrupt: In(1)
    memory_byte: In(8)
    word_byte: In(8)
    shift_word: Out(1)
    o: Out(stream.Signature(AnswerByte))

    def __init__(self, receive_bytes: int) -> None:
        # First half of the HELLO_BYTES; the second half is ADDRESS, in the word.
        self._identity = (LINK_VERSION, 0, receive_bytes & 0xFF, receive_bytes >> 8)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        without_data = self.send_status & (self.refused | self.complained)
        m.d.comb += [
            self.o.valid.eq(self.send_number | self.send_status | self.send_byte),
            self.sent.eq(self.o.valid & self.o.ready),
            self.more.eq(self.send_number | (~self.done & ~without_data)),
            self.o.payload.last.eq(~self.more),
        ]

        interrupt = Signal(reset_less=True)
        with m.If(self.send_number):
            m.d.sync += interrupt.eq(self.interrupt)
        decision = Mux(self.refused, Answer.REFUSED, Answer.DONE)
        status = Mux(self.complained, Answer.EXPECTED, decision) | (interrupt << INTERRUPT_BIT)

        index = (self.minus_left + HELLO_BYTES - 1)[: ceil_log2(HELLO_BYTES)]
        identity = Signal()
        m.d.comb += [
            identity.eq(self.hello & (index < len(self._identity))),
            self.shift_word.eq(self.send_byte & ~identity),
        ]

        byte = self.o.payload.byte
        with m.If(self.send_number):
            m.d.comb += byte.eq(self.number)
        with m.Elif(self.send_status):
            m.d.comb += byte.eq(status)
        with m.Elif(identity):
            m.d.comb += byte.eq(Array(self._identity)[index[:2]])
        with m.Elif(self.to_memory):
            m.d.comb += byte.eq(self.memory_byte)
        with m.Else():
            m.d.comb += byte.eq(self.word_byte)
        return m
