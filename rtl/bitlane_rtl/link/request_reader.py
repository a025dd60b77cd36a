"""Reads the requests of datagrams for the executor, if they belong to the session that is alive."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi.datagrams import GOODBYE, TAKE_OVER
from ..abi.frames import Request
from ..primitives import ALWAYS, Ram, one_hot_fsm
from ..serial.byte_counter import SIZE_BITS
from ..serial.receiver import Kind
from .packets import HEADER_WORDS, PacketWord
from .sequence_check import Complaint, SequenceCheck
from .session_timer import SessionTimer

__all__ = ["AnswerContext", "RequestReader"]


class AnswerContext(wiring.Signature):
    """Signature of properties of requests that their answers need, from the reader's side.

    Members
    -------
    index : ``In(range(HEADER_WORDS + 1))``; header : ``Out(32)``
        Word ``index`` of the packet of the datagram, of which the last one is SESSION. ``index`` is
        HEADER_WORDS while ``closed`` is 1.
    size : ``Out(SIZE_BITS)``
        SIZE of the request that is executed.
    hello : ``Out(1)``
        That request is a HELLO.
    busy : ``Out(1)``
        It is a HELLO to answer with BUSY.
    close : ``Out(1)``; closed : ``In(1)``
        All requests of the datagram have been answered; ``close`` is held until ``closed``.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "index": In(range(HEADER_WORDS + 1)),
                "header": Out(32),
                "size": Out(SIZE_BITS),
                "hello": Out(1),
                "busy": Out(1),
                "close": Out(1),
                "closed": In(1),
            }
        )


class _State(data.Struct):
    """The states of `RequestReader`, one hot."""

    header: 1 = 1
    head: 1
    decide: 1
    send: 1
    load: 1
    complain: 1
    answer: 1
    discard: 1
    close: 1


class RequestReader(wiring.Component):
    """Checks SESSION and sequence numbers, and outputs the requests that shall be executed.

    ========  ========================================================  ============================
    State     What happens                                              Next
    ========  ========================================================  ============================
    header    a word of the packet's header, or SESSION, is stored      head after SESSION
    head      the first word of a frame, or the CRC, is taken           decide; close after the CRC
    decide    the session and the number of the frame are checked       send; complain if out of
                                                                        turn; else discard
    send      a byte is output                                          load behind a word; answer
                                                                        behind the frame
    load      the next word is taken; a word of data is output, or      send; after a word that is
              kept to output its bytes                                  output load or answer
    complain  the complaint is valid, if it is the first one            answer or discard
    answer    the answer is executed                                    head; discard after a
                                                                        complaint
    discard   words are taken up to the datagram's last one             close
    close     the datagram of the answers is closed                     header
    ========  ========================================================  ============================

    Parameters
    ----------
    clock_hz
        Clocks a second, for SESSION_SECONDS.

    Members
    -------
    i : ``In(stream.Signature(PacketWord))``
        Datagrams that `DatagramCheck` found good.
    o : ``Out(stream.Signature(8))``
        Requests as `RequestReceiver` outputs them. A GOODBYE is a READ of no bytes.
    words : ``Out(stream.Signature(32))``
        The data of a WRITE. They are output here while ``words.ready``, or in bytes after
        ``o.ready``, which are never both 1 behind a header.
    complaint : ``Out(Complaint())``
    answered : ``In(1)``
        The last byte or word of an answer is transferred; 2 cycles or more after the request's.
    context : ``Out(AnswerContext())``

    Latency: 9 cycles from a datagram's first word to the first byte of ``o``.
    Throughput: 4 bytes every 5 cycles, or a word a cycle; a request must be answered before the
    next one is output. Path through it: from ``words.ready`` and ``o.ready`` to ``i.ready``.
    """

    i: In(stream.Signature(PacketWord))
    o: Out(stream.Signature(8))
    words: Out(stream.Signature(32))
    complaint: Out(Complaint())
    answered: In(1)
    context: Out(AnswerContext())

    def __init__(self, clock_hz: int) -> None:
        self._timer = SessionTimer(clock_hz)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state: Any = Signal(_State)
        taken = self.i.valid & self.i.ready
        ours, former = self._store_header(m, state, taken)
        request = _Request()
        allowed, in_turn = self._decide(m, state, request, ours, former)
        sent, all_sent, may_load = self._send(m, state, request)
        dropping = Signal()
        m.d.sync += dropping.eq(state.complain | (dropping & ~state.head))
        m.d.comb += [
            self.i.ready.eq(state.header | state.head | (state.load & may_load) | state.discard),
            self.context.close.eq(state.close),
        ]
        last = self.i.payload.last
        at_session = self._index == HEADER_WORDS
        decided = state.decide & self.i.valid
        one_hot_fsm(
            m,
            state,
            {
                "header": [(taken & at_session, "head")],
                "head": [(taken & last, "close"), (taken, "decide")],
                "decide": [
                    (decided & ~allowed, "discard"),
                    (decided & ~in_turn, "complain"),
                    (decided, "send"),
                ],
                "send": [(all_sent, "answer"), (sent, "load")],
                "load": [(all_sent, "answer"), (taken & ~sent, "send")],
                "complain": [(self.complaint.valid, "answer"), (ALWAYS, "discard")],
                "answer": [(self.answered & dropping, "discard"), (self.answered, "head")],
                "discard": [(taken & last, "close")],
                "close": [(self.context.closed, "header")],
            },
        )
        return m

    def _store_header(self, m: Module, state: Any, taken: Any) -> tuple[Signal, Signal]:
        """Return whether SESSION is that of the last session, and of the one before.

        Keep the header for the answers.
        """
        self._index = index = Signal(range(HEADER_WORDS + 1))
        self._session = session = Signal(32)
        self._former = Signal(32)
        ours = Signal(reset_less=True)
        former = Signal(reset_less=True)
        ram = Ram(32, 8, style="distributed")
        m.submodules.storage = ram.memory
        m.d.comb += [
            ram.write.addr.eq(index),
            ram.write.data.eq(self.i.payload.data),
            ram.write.en.eq(state.header),
            ram.read.addr.eq(self.context.index),
            self.context.header.eq(ram.read.data),
        ]
        with m.If(state.header):
            m.d.sync += [
                ours.eq(self.i.payload.data == session),
                former.eq(self.i.payload.data == self._former),
            ]
            with m.If(taken):
                m.d.sync += index.eq(index + 1)
        with m.Else():
            m.d.sync += index.eq(0)
        return ours, former

    def _decide(
        self, m: Module, state: Any, request: "_Request", ours: Signal, former: Signal
    ) -> tuple[Signal, Signal]:
        """Return whether the session is right, and the number; valid in the state ``decide``."""
        m.submodules.timer = timer = self._timer
        m.submodules.sequence = sequence = SequenceCheck(counted=True)
        wiring.connect(m, sequence.complaint, wiring.flipped(self.complaint))
        head = self.i.payload.data
        kind = head[8:16]
        hello, goodbye = request.hello, Signal()
        unknown = Signal()
        with m.If(state.head):
            m.d.sync += [
                request.write.eq(kind == Request.WRITE),
                hello.eq(kind == Request.HELLO),
                goodbye.eq(kind == GOODBYE),
                unknown.eq(kind > GOODBYE),
                request.size.eq(head[16:]),
            ]
        m.d.comb += [
            sequence.load.eq(state.head),
            sequence.number.eq(head[:8]),
            sequence.any.eq(state.head & ((kind == Request.HELLO) | (kind == GOODBYE))),
        ]
        # The next word, ADDRESS, is at the input.
        starts, allowed, decided = Signal(), Signal(), Signal()
        in_turn = ~sequence.out_of_turn
        m.d.comb += [
            decided.eq(state.decide & self.i.valid),
            starts.eq(hello & (ours | (~former & (~timer.alive | head[TAKE_OVER])))),
            allowed.eq(hello | ours),
            timer.restart.eq(decided & (starts | (ours & ~goodbye))),
            timer.stop.eq(decided & ours & goodbye),
            # A late copy of the HELLO that started the session changes no number.
            sequence.good.eq(decided & Mux(hello, starts & ~ours, ours & ~goodbye & in_turn)),
            sequence.dropped.eq(decided & ours & ~in_turn),
            request.kind.write.eq(request.write),
            request.kind.hello.eq(starts),
            request.kind.unknown.eq(unknown | (hello & ~starts)),
            request.kind.repeated.eq(sequence.repeated),
            self.context.size.eq(request.size),
            self.context.hello.eq(hello),
        ]
        with m.If(decided):
            m.d.sync += self.context.busy.eq(hello & ~starts)
        with m.If(decided & starts):
            m.d.sync += [self._session.eq(self.context.header), ours.eq(1)]
            with m.If(~ours):
                m.d.sync += self._former.eq(self._session)
        return allowed, in_turn

    def _send(self, m: Module, state: Any, request: "_Request") -> tuple[Any, Any, Any]:
        """Output bytes or words.

        Return whether a word is sent, whether it is the frame's last one, and whether the next word
        may be loaded.
        """
        word = Signal(32, reset_less=True)
        lane = Signal(2)
        in_head = Signal()  # the words of the frame's header
        in_address = Signal()
        left = Signal(SIZE_BITS - 1, reset_less=True)  # words of data
        kind = request.kind.as_value()
        in_data = ~in_head & ~in_address
        byte_sent = self.o.valid & self.o.ready
        m.d.comb += [
            self.o.valid.eq(state.send),
            self.o.payload.eq(word[:8]),
            self.words.valid.eq(state.load & in_data & self.i.valid),
            self.words.payload.eq(self.i.payload.data),
        ]
        with m.If(state.head | state.load):
            m.d.sync += [word.eq(self.i.payload.data), lane.eq(0)]
        with m.Elif(byte_sent):
            m.d.sync += [word.eq(word[8:]), lane.eq(lane + 1)]
        # The last byte of data may end within a word.
        last = Mux(in_data, left == 1, ~in_head & (left == 0))
        last_lane = Mux(in_data & last, (request.size - 1)[:2], 3)
        sent = (self.words.valid & self.words.ready) | (byte_sent & (lane == last_lane))
        with m.If(state.decide):
            m.d.sync += [
                word[8 : 8 + len(kind)].eq(kind),
                left.eq(Mux(request.write, (request.size + 3)[2:], 0)),
                in_head.eq(1),
                in_address.eq(0),
            ]
        with m.Elif(sent):
            m.d.sync += [in_head.eq(0), in_address.eq(in_head), left.eq(left - in_data)]
        return sent, sent & last, ~in_data | self.words.ready | self.o.ready


class _Request:
    """Properties of the request that is read."""

    def __init__(self) -> None:
        self.write = Signal(name="is_write")
        self.hello = Signal(name="is_hello")
        self.size = Signal(SIZE_BITS, name="size", reset_less=True)
        self.kind: Any = Signal(Kind, name="kind")
        """It replaces the kind in the header."""
