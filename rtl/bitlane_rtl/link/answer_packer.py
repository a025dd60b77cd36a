"""Packs answers into datagrams: the packet's header and SESSION before them, the CRC behind."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import DATAGRAM_BYTES
from ..primitives import Ram, one_hot_fsm
from .crc32 import Crc32
from .packets import HEADER_WORDS, PacketWord
from .words import AnswerWord, Mark

__all__ = ["AnswerPacker"]

_ROOM = DATAGRAM_BYTES // 4 - 2
"""Words of a datagram, without SESSION and CRC."""


class _State(data.Struct):
    """The states of `AnswerPacker`, one hot."""

    move: 1 = 1
    greet: 1
    close: 1


class AnswerPacker(wiring.Component):
    """Makes datagrams of answers, each as `abi.datagrams` specifies.

    =====  ================================================  ======================================
    State  What happens                                      Next
    =====  ================================================  ======================================
    move   a word of the header, or SESSION, is stored; a    greet before the first answer; close
           word of an answer is sent                         before one that does not fit, and at
                                                             the end
    greet  a stored word is sent                             move after SESSION
    close  the CRC is sent                                   move
    =====  ================================================  ======================================

    Latency: 1 cycle of an answer, 8 of the first one of a datagram, and 0 of data. Throughput: a
    word a cycle.
    Paths through it: from ``i`` to ``o``, and from ``o.ready`` to ``i.ready``.
    Area: 340 LUT4, of which two thirds are the CRC's, 85 flip-flops and 8 LUT RAMs on ECP5.
    """

    i: In(stream.Signature(AnswerWord))
    """Answers; the header and SESSION before them; and their end. Data come with `Mark.WORD`."""
    o: Out(stream.Signature(PacketWord))
    """Datagrams with the packet's header in front."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state: Any = Signal(_State)
        i, o = self.i, self.o
        begun = Signal()  # a datagram
        sent = o.valid & o.ready
        starts = i.valid & (i.p.mark == Mark.ANSWER)
        ends = i.valid & (i.p.mark == Mark.END)
        is_header = i.p.mark == Mark.HEADER
        fits = self._count_room(m, state, sent)
        # A register, because the executor waits for it. The first answer of a datagram fits.
        allowed = Signal()
        with m.If(state.greet):
            m.d.sync += allowed.eq(1)
        with m.Elif(state.move):
            m.d.sync += allowed.eq(Mux(allowed, ~sent, starts & begun & fits))
        # A word of data follows its answer, and so its datagram has begun.
        moves = (i.p.mark == Mark.WORD) | ((i.p.mark == Mark.ANSWER) & allowed)
        greets = state.move & starts & ~begun
        greeting, at_session = self._greet(m, state, greets, sent)
        m.d.comb += [
            i.ready.eq(
                state.move & ((moves & o.ready) | is_header | ((i.p.mark == Mark.END) & ~begun))
            ),
            o.valid.eq((state.move & moves & i.valid) | state.greet | state.close),
        ]
        m.submodules.crc = crc = Crc32(32)
        m.d.comb += [
            crc.clear.eq(state.greet & ~at_session),
            crc.data.eq(Mux(state.greet, greeting, i.p.data)),
            crc.valid.eq(sent),
            o.p.data.eq(Mux(state.close, crc.crc, crc.data)),
            o.p.last.eq(state.close),
        ]
        m.d.sync += begun.eq((begun | state.greet) & ~state.close)
        one_hot_fsm(
            m,
            state,
            {
                "move": [
                    (greets, "greet"),
                    (ends & begun, "close"),
                    (starts & ~allowed & ~fits, "close"),
                ],
                "greet": [(sent & at_session, "move")],
                "close": [(sent, "move")],
            },
        )
        return m

    def _greet(self, m: Module, state: Any, begins: Value, sent: Value) -> tuple[Signal, Signal]:
        """Store the header and SESSION. Return the word to send, and whether it is SESSION."""
        ram = Ram(32, HEADER_WORDS + 2, style="distributed")
        m.submodules.storage = ram.memory
        writes = self.i.valid & (self.i.p.mark == Mark.HEADER)
        index = Signal(range(HEADER_WORDS + 1))
        # The number of the word behind `word`; 0 in the state `move`.
        following = Signal(range(HEADER_WORDS + 2))
        assert 1 << len(following) == HEADER_WORDS + 2
        # A register, because the RAM's output and the CRC take too much of a cycle.
        word = Signal(32, reset_less=True)
        at_session = Signal()
        m.d.comb += [
            ram.write.addr.eq(index),
            ram.write.data.eq(self.i.p.data),
            ram.write.en.eq(writes),
            ram.read.addr.eq(following),
            at_session.eq(following == HEADER_WORDS + 1),
        ]
        with m.If(writes):
            m.d.sync += index.eq(Mux(index == HEADER_WORDS, 0, index + 1))
        m.d.sync += following.eq(following + (begins | (state.greet & sent)))
        with m.If(~state.greet | sent):
            m.d.sync += word.eq(ram.read.data)
        return word, at_session

    def _count_room(self, m: Module, state: Any, sent: Value) -> Value:
        """Return whether the answer at the input fits into the datagram."""
        # Words of data that the datagram has room for; -1 if not even the header fits.
        room = Signal(range(-1, _ROOM))
        with m.If(state.greet):
            m.d.sync += room.eq(_ROOM - 1)
        with m.Elif(sent):
            m.d.sync += room.eq(room - 1)
        return ~room[-1] & (self.i.p.last | (self.i.p.left < room[:-1]))
