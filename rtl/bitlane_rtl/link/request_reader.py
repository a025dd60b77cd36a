"""Reads the requests of datagrams for the executor, if they belong to the session that is alive."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import BUSY, GOODBYE, HELLO_BYTES, TAKE_OVER, Answer, Request
from ..primitives import one_hot_fsm
from .packets import HEADER_WORDS, PacketWord
from .sequence_check import SequenceCheck
from .session_timer import SessionTimer
from .words import SIZE_BITS, Kind, Mark, RequestHead, RequestWord, words_behind

__all__ = ["RequestReader"]


class _State(data.Struct):
    """The states of `RequestReader`, one hot."""

    header: 1 = 1
    head: 1
    decide: 1
    send: 1
    move: 1
    answer: 1
    discard: 1
    end: 1


class RequestReader(wiring.Component):
    """Checks SESSION and sequence numbers, and outputs the requests that shall be executed.

    =======  =========================================================  ===========================
    State    What happens                                               Next
    =======  =========================================================  ===========================
    header   a word of the packet's header, or SESSION, is output       head after SESSION
    head     the first word of a frame, or the CRC, is taken            decide; end after the CRC
    decide   the session and the number of the frame are checked        send; answer if it is not
                                                                        to be executed
    send     its first word is output                                   move
    move     ADDRESS, or a word of its data, is output                  head after the last one
    answer   EXPECTED, if it is the first complaint, or BUSY is output  discard
    discard  words are taken up to the datagram's last one              end
    end      the end of the datagram is output                          header
    =======  =========================================================  ===========================

    Parameters
    ----------
    clock_hz
        Clocks a second, for SESSION_SECONDS.

    Latency: 3 cycles from a frame's first word to ``o``. Throughput: a word a cycle, and 2 cycles
    more for each frame. Paths through it: from ``i`` to ``o``, and from ``o.ready`` to ``i.ready``.
    Area: 239 LUT4, 63 CCU2C and 242 flip-flops on ECP5.
    """

    i: In(stream.Signature(PacketWord))
    """Datagrams that `DatagramCheck` found good."""
    o: Out(stream.Signature(RequestWord))
    """The header and SESSION of each datagram, its requests, the answer to one that is not to be
    executed, and the end. A GOODBYE is a READ of no bytes."""
    interrupt: In(1)
    """Level of the interrupt line."""

    def __init__(self, clock_hz: int) -> None:
        self._timer = SessionTimer(clock_hz)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sequence = self._sequence = SequenceCheck(counted=True)
        state: Any = Signal(_State)
        i, o = self.i, self.o
        head: Any = Signal(RequestHead, reset_less=True)
        with m.If(state.head):
            m.d.sync += Value.cast(head).eq(i.p.data)
        self._follow_kind(m, state)
        taken, sent = i.valid & i.ready, o.valid & o.ready
        ours, former, at_session = self._follow_header(m, state, taken)
        executes, busy = self._decide(m, state, (ours, former))
        answers = busy | self._sequence.complaint.valid
        self._output(m, state, head, busy)
        is_last = self._count(m, state, sent)
        passes = state.header | state.move
        m.d.comb += [
            i.ready.eq(state.head | state.discard | (passes & o.ready)),
            o.valid.eq((passes & i.valid) | state.send | (state.answer & answers) | state.end),
            self._sequence.complaint.answered.eq(state.answer & sent & ~busy),
        ]
        one_hot_fsm(
            m,
            state,
            {
                "header": [(sent & at_session, "head")],
                "head": [(taken & i.p.last, "end"), (taken, "decide")],
                "decide": [(i.valid & executes, "send"), (i.valid, "answer")],
                "send": [(sent, "move")],
                "move": [(sent & is_last, "head")],
                "answer": [(sent | ~answers, "discard")],
                "discard": [(taken & i.p.last, "end")],
                "end": [(sent, "header")],
            },
        )
        return m

    def _follow_kind(self, m: Module, state: Any) -> None:
        """Decode the kind of a frame ahead of the state ``decide``, which bounds the clock."""
        word: Any = data.View(RequestHead, self.i.p.data)
        byte = word.kind.as_value()
        self._write = write = Signal(reset_less=True)
        self._hello = hello = Signal(reset_less=True)
        self._goodbye = goodbye = Signal(reset_less=True)
        self._unknown = unknown = Signal(reset_less=True)
        with m.If(state.head):
            m.d.sync += [
                write.eq(byte == Request.WRITE),
                hello.eq(byte == Request.HELLO),
                goodbye.eq(byte == GOODBYE),
                unknown.eq(byte > GOODBYE),
            ]

    def _count(self, m: Module, state: Any, sent: Value) -> Value:
        """Return whether the word at the input, behind a frame's first one, is the last one."""
        word: Any = data.View(RequestHead, self.i.p.data)
        size_less_1 = Signal(SIZE_BITS, reset_less=True)
        has_data = Signal(reset_less=True)
        at_address = Signal(reset_less=True)
        left = Signal(SIZE_BITS - 1, reset_less=True)  # words of data behind the next one
        with m.If(state.head):
            m.d.sync += [
                size_less_1.eq(word.size - 1),
                has_data.eq((word.kind.as_value() == Request.WRITE) & word.size.any()),
            ]
        with m.If(state.decide):
            m.d.sync += [
                at_address.eq(1),
                left.eq(words_behind(self.i.p.data[:2], size_less_1)),
            ]
        with m.Elif(state.move & sent):
            m.d.sync += [at_address.eq(0), left.eq(left - ~at_address)]
        return Mux(at_address, ~has_data, left == 0)

    def _follow_header(self, m: Module, state: Any, taken: Value) -> tuple[Signal, Signal, Value]:
        """Return whether SESSION is that of the last session, whether it is that of the one before,
        and whether it is at the input.
        """
        self._asked = asked = Signal(32, reset_less=True)
        self._session = session = Signal(32)
        self._former = Signal(32)
        index = Signal(range(HEADER_WORDS + 1))
        ours = Signal(reset_less=True)
        former = Signal(reset_less=True)
        with m.If(state.header):
            m.d.sync += [
                asked.eq(self.i.p.data),
                ours.eq(self.i.p.data == session),
                former.eq(self.i.p.data == self._former),
                index.eq(index + taken),
            ]
        with m.Else():
            m.d.sync += index.eq(0)
        return ours, former, index == HEADER_WORDS

    def _decide(
        self, m: Module, state: Any, sessions: tuple[Signal, Signal]
    ) -> tuple[Value, Signal]:
        """Return whether a request shall be executed, in the state ``decide``, and whether it is a
        HELLO to answer with BUSY, behind it.
        """
        m.submodules.timer = timer = self._timer
        sequence, (ours, former) = self._sequence, sessions
        hello, goodbye = self._hello, self._goodbye
        word = self.i.p.data
        next_kind = word[8:16]
        busy = Signal(reset_less=True)
        # The next word, ADDRESS, is at the input.
        starts, decided = Signal(), Signal()
        in_turn = ~sequence.out_of_turn
        m.d.comb += [
            sequence.load.eq(state.head),
            sequence.number.eq(Cat(word[:8], word[16 + SIZE_BITS :])),
            sequence.any.eq(state.head & ((next_kind == Request.HELLO) | (next_kind == GOODBYE))),
            decided.eq(state.decide & self.i.valid),
            starts.eq(hello & (ours | (~former & (~timer.alive | word[TAKE_OVER])))),
            timer.restart.eq(decided & (starts | (ours & ~goodbye))),
            timer.stop.eq(decided & ours & goodbye),
            # A late copy of the HELLO that started the session changes no number.
            sequence.good.eq(decided & Mux(hello, starts & ~ours, ours & ~goodbye & in_turn)),
            sequence.dropped.eq(decided & ours & ~in_turn),
        ]
        with m.If(state.decide):
            m.d.sync += busy.eq(hello)
        with m.If(decided & starts):
            m.d.sync += [self._session.eq(self._asked), ours.eq(1)]
            with m.If(~ours):
                m.d.sync += self._former.eq(self._session)
        return Mux(hello, starts, ours & in_turn), busy

    def _output(self, m: Module, state: Any, head: Any, busy: Signal) -> None:
        """Output the first word of a request, or an answer, or the word at the input."""
        number = Cat(head.number_low, head.number_high)
        interrupt = Signal(reset_less=True)
        with m.If(state.decide):
            m.d.sync += interrupt.eq(self.interrupt)
        first: Any = Signal(RequestHead)
        kind: Any = Signal(Kind)
        expected = state.answer & ~busy
        assert BUSY == Answer.EXPECTED | 1
        m.d.comb += [
            kind.write.eq(self._write),
            kind.hello.eq(self._hello),
            kind.unknown.eq(self._unknown),
            kind.repeated.eq(self._sequence.repeated),
            Cat(first.number_low, first.number_high).eq(
                Mux(expected, self._sequence.complaint.expected, number)
            ),
            first.kind.as_value().eq(
                Mux(state.answer, Cat(busy, Const(1, 6), interrupt), kind.as_value())
            ),
            # A HELLO has SIZE 0.
            first.size.eq(
                (head.size | Mux(kind.hello, HELLO_BYTES, 0)) & ~state.answer.replicate(SIZE_BITS)
            ),
            self.o.p.data.eq(Mux(state.header | state.move, self.i.p.data, first.as_value())),
        ]
        with m.If(state.header):
            m.d.comb += self.o.p.mark.eq(Mark.HEADER)
        with m.Elif(state.answer):
            m.d.comb += self.o.p.mark.eq(Mark.ANSWER)
        with m.Elif(state.end):
            m.d.comb += self.o.p.mark.eq(Mark.END)
