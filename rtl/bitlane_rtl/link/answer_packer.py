"""Packs answers into datagrams: sizes, padding, SESSION and CRC."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi.datagrams import BUSY, DATAGRAM_BYTES
from ..abi.frames import HELLO_BYTES, Answer
from ..primitives import ALWAYS, one_hot_fsm
from ..serial.byte_counter import SIZE_BITS
from ..serial.transmitter import AnswerByte
from .crc32 import Crc32
from .data_mover import AnswerWord
from .packets import HEADER_WORDS, PacketWord
from .request_reader import AnswerContext

__all__ = ["AnswerPacker"]

_ROOM = DATAGRAM_BYTES // 4 - 2
"""Words of a datagram, without SESSION and CRC."""


class _State(data.Struct):
    """The states of `AnswerPacker`, one hot."""

    number: 1 = 1
    status: 1
    check: 1
    header: 1
    word: 1
    byte: 1
    crc: 1


class AnswerPacker(wiring.Component):
    """Makes datagrams of answers, each as `abi.datagrams` specifies.

    ======  ==================================================  ====================================
    State   What happens                                        Next
    ======  ==================================================  ====================================
    number  SEQUENCE is taken                                   status; crc with ``context.close``,
                                                                if a datagram has begun
    status  the status is taken, and SIZE follows from it       check
    check   the answer's words are compared with the room       word; header before the first
                                                                answer; crc if they do not fit
    header  a word of the packet's header, or SESSION, is sent  check after SESSION
    word    a word of the answer is sent                        byte; word if the next is taken;
                                                                number behind the answer
    byte    a byte of data is taken, or a whole word            word behind a word's last byte, or
                                                                the answer's
    crc     the CRC is sent                                     check if an answer waits, else
                                                                number
    ======  ==================================================  ====================================

    Members
    -------
    i : ``In(stream.Signature(AnswerByte))``
        Answers. ``ready`` stays 1 until a byte is transferred, unless ``context.close`` is 1.
    words : ``In(stream.Signature(AnswerWord))``
        The data of an answer in place of its bytes behind the status. Valid only there.
    context : ``In(AnswerContext())``
    o : ``Out(stream.Signature(PacketWord))``
        Datagrams with the packet's header in front.

    Latency: 2 cycles from an answer's status to ``o``, and 7 words of the header before the first.
    Throughput: a word of data that comes in bytes every 5 cycles, any other word each cycle.
    Path through it: from ``o.ready`` to ``words.ready``.
    """

    i: In(stream.Signature(AnswerByte))
    words: In(stream.Signature(AnswerWord))
    context: In(AnswerContext())
    o: Out(stream.Signature(PacketWord))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state: Any = Signal(_State)
        word = Signal(32)
        ended = Signal()  # `word` is the last one of its answer
        begun = Signal()  # a datagram
        waiting = Signal()  # an answer, until the datagram before is closed
        taken = Signal()
        word_taken = Signal()
        sent = Signal()
        index = Signal(range(HEADER_WORDS + 1), init=HEADER_WORDS)
        m.d.comb += [
            self.context.index.eq(index),
            self.context.closed.eq(state.number & self.context.close & ~begun),
            self.i.ready.eq((state.number & ~self.context.close) | state.status | state.byte),
            taken.eq(self.i.ready & self.i.valid),
            self.words.ready.eq(state.byte | (state.word & sent)),
            word_taken.eq(self.words.ready & self.words.valid),
            self.o.valid.eq(state.header | state.word | state.crc),
            sent.eq(self.o.valid & self.o.ready),
        ]
        lane = self._fill(m, state, word, taken, sent)
        fits = self._count_room(m, state, word, sent)
        # A register, because the RAM's output and the CRC take too much of a cycle.
        header = Signal(32, reset_less=True)
        at_session = Signal()
        with m.If((state.status & ~begun) | (state.crc & waiting)):
            m.d.sync += index.eq(0)
        with m.If((state.check & ~begun) | (state.header & sent)):
            m.d.sync += [
                header.eq(self.context.header),
                at_session.eq(index == HEADER_WORDS),
                index.eq(index + (index != HEADER_WORDS)),
            ]
        self._output(m, state, Mux(state.header, header, word), at_session, sent)
        with m.If(state.header):
            m.d.sync += begun.eq(1)
        with m.If(state.crc):
            m.d.sync += begun.eq(0)
        m.d.sync += waiting.eq(state.check | (waiting & ~state.number & ~state.word))
        with m.If(taken):
            m.d.sync += ended.eq(self.i.payload.last)
        with m.If(word_taken):
            m.d.sync += [word.eq(self.words.p.data), ended.eq(self.words.p.last)]
        one_hot_fsm(
            m,
            state,
            {
                "number": [(taken, "status"), (self.context.close & begun, "crc")],
                "status": [(taken, "check")],
                "check": [(~begun, "header"), (~fits, "crc"), (ALWAYS, "word")],
                "header": [(sent & at_session, "check")],
                "word": [(word_taken, "word"), (sent & ended, "number"), (sent, "byte")],
                "byte": [(word_taken | (taken & ((lane == 3) | self.i.payload.last)), "word")],
                "crc": [(sent & waiting, "check"), (sent, "number")],
            },
        )
        return m

    def _fill(self, m: Module, state: Any, word: Signal, taken: Signal, sent: Signal) -> Signal:
        """Drive ``word`` with the next word of the answer. Return the byte's place in it."""
        i, context = self.i, self.context
        lane = Signal(2)
        data_size = Mux(context.hello, HELLO_BYTES, context.size)
        with m.If(state.word & sent):
            m.d.sync += [word.eq(0), lane.eq(0)]
        # Refused is what a HELLO is for the executor that finds another session.
        assert Answer.REFUSED | 2 == BUSY
        with m.If(state.number):
            m.d.sync += word.eq(i.payload.byte)
        with m.Elif(state.status):
            m.d.sync += [
                word[8:16].eq(i.payload.byte | (context.busy << 1)),
                word[16:].eq(data_size & (~i.payload.last).replicate(SIZE_BITS)),
            ]
        with m.Elif(state.byte):
            with m.Switch(lane):
                for number in range(4):
                    with m.Case(number):
                        m.d.sync += word.word_select(number, 8).eq(i.payload.byte)
            with m.If(taken):
                m.d.sync += lane.eq(lane + 1)
        return lane

    def _count_room(self, m: Module, state: Any, word: Signal, sent: Signal) -> Any:
        """Return whether the answer whose header is ``word`` fits into the datagram."""
        # Words of data that the datagram has room for; -1 if not even the header fits.
        room = Signal(range(-1, _ROOM))
        with m.If(state.header):
            m.d.sync += room.eq(_ROOM - 1)
        with m.If(state.word & sent):
            m.d.sync += room.eq(room - 1)
        return word[16 : 16 + SIZE_BITS] <= Cat(Const(0, 2), room).as_signed()

    def _output(self, m: Module, state: Any, word: Value, at_session: Signal, sent: Signal) -> None:
        """Output ``word``, or the CRC of SESSION and the words behind it."""
        m.submodules.crc = crc = Crc32(32)
        m.d.comb += [
            crc.clear.eq(state.header & ~at_session),
            crc.data.eq(word),
            crc.valid.eq(sent),
            self.o.payload.data.eq(Mux(state.crc, crc.crc, word)),
            self.o.payload.last.eq(state.crc),
        ]
