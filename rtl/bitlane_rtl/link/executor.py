"""Executes requests on memory and control window, one after the other, and answers them.

It executes a request only if all of it is allowed, and never a repeated write.
"""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import CONTROL_BASE, FRAME_DATA_BYTES, LINK_VERSION, WORD_BYTES, Answer
from ..configuration import Configuration
from ..ports import CONTROL_ADDRESS_WIDTH, ControlPort
from ..primitives import ALWAYS, one_hot_fsm
from .memory_bounds import MemoryBounds
from .words import (
    SIZE_BITS,
    AnswerWord,
    DataTransfer,
    Mark,
    RequestHead,
    RequestWord,
    words_behind,
)

__all__ = ["RequestExecutor"]

_WORD_BITS = exact_log2(WORD_BYTES)
_CONTROL = CONTROL_BASE >> CONTROL_ADDRESS_WIDTH


class _State(data.Struct):
    """The states of `RequestExecutor`, one hot."""

    head: 1 = 1
    address: 1
    check: 1
    compare: 1
    begin: 1
    take: 1
    settle: 1
    answer: 1
    read: 1
    fetch: 1
    put: 1


class RequestExecutor(wiring.Component):
    """Takes a request, checks it, accesses memory or control window, and outputs the answer.

    A READ and a HELLO are answered first and then read word by word; a WRITE is written word by
    word and then answered. A refused or repeated WRITE passes the same states and writes nothing.

    =======  =====================================================  ===============================
    State    What happens                                           Next
    =======  =====================================================  ===============================
    head     a request's first word is taken, or a word with        address after the former
             another mark is passed on
    address  ADDRESS is taken                                       check
    check    the last address and the number of words are computed  compare
    compare  first and last address are compared with the bounds    begin
    begin    a transfer is started; of a READ or a HELLO the        WRITE with data: take;
             interrupt line is sampled                              else: answer
    take     a word of a WRITE is taken, and written or dropped     settle after the last word
    settle   the last words are written; the interrupt line is      answer
             sampled
    answer   the answer's first word is sent                        read from memory, fetch from
                                                                    elsewhere; head without data
    read     a word of the memory is sent                           head after the last word
    fetch    a word of the control window is read, once             put
             ``o.ready`` is 1
    put      it is sent, or a word of the answer to a HELLO         fetch; head after the last word
    =======  =====================================================  ===============================

    Parameters
    ----------
    configuration
        Its ``memory_base`` and ``memory_bytes`` bound the addresses that are allowed.
    receive_bytes
        RECEIVE_BYTES of the answer to a HELLO.

    Members
    -------
    i
        Requests, whose first words are `RequestHead`; and words with other marks between them.
    o
        Answers, and the words with other marks than `Mark.WORD` from ``i``. ``ready`` must stay 1
        until a word is transferred.
    memory
        Transfers of the data of requests.
    control
        Port of the controlled circuit.
    interrupt
        Level of the interrupt line.

    Latency: with a request's first word transferred in cycle 0 and ADDRESS in cycle 1, the answer
    to a READ or a HELLO begins in cycle 5, to a WRITE of ``n`` words in cycle ``6 + n``; without
    data, in cycle 5.
    Throughput: a word a cycle to and from memory, and to the control window; from there a word
    every 2 cycles. While ``memory``, ``i`` or ``o`` is not ready or valid, the executor waits.
    Paths through it: from ``i`` to ``o`` and ``memory.words``, and back to ``i.ready``.
    Area (128 KiB of memory): ECP5 232 LUT4, 33 CCU2C and 88 flip-flops; iCE40 259 LUT4. Registers
    that a request loads before it uses them have no reset: the enable of an iCE40 flip-flop gates
    its reset, too.
    """

    def __init__(self, configuration: Configuration, receive_bytes: int) -> None:
        self._identity = LINK_VERSION | receive_bytes << 16
        self._bounds = MemoryBounds(configuration)
        super().__init__(
            {
                "i": In(stream.Signature(RequestWord)),
                "o": Out(stream.Signature(AnswerWord)),
                "memory": Out(DataTransfer(configuration.address_width)),
                "control": In(ControlPort()),
                "interrupt": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state: Any = Signal(_State)
        head: Any = Signal(RequestHead, reset_less=True)
        with m.If(state.head):
            m.d.sync += Value.cast(head).eq(self.i.p.data)
        is_request = self.i.p.mark == Mark.WORD
        taken = self.i.valid & self.i.ready
        sent = self.o.valid & self.o.ready
        self._count(m, state, head, taken, sent)
        refused, to_control = self._check(m, state, head)
        none = head.size == 0
        drops = refused | (head.kind.write & head.kind.repeated)
        in_memory = ~to_control & ~head.kind.hello
        data_follow = ~(head.kind.write | refused | none)
        self._access(m, state, head, in_memory, drops)
        self._answer(m, state, head, refused, data_follow)
        m.d.comb += [
            self.memory.start.eq(state.begin & in_memory & ~drops & ~none),
            self.i.ready.eq(
                (state.head & (is_request | self.o.ready))
                | state.address
                | (state.take & (drops | to_control | self.memory.words.ready))
            ),
        ]
        one_hot_fsm(
            m,
            state,
            {
                "head": [(taken & is_request, "address")],
                "address": [(taken, "check")],
                "check": [(ALWAYS, "compare")],
                "compare": [(ALWAYS, "begin")],
                "begin": [(head.kind.write & ~none, "take"), (ALWAYS, "answer")],
                "take": [(taken & self._is_last, "settle")],
                "settle": [(self.memory.done, "answer")],
                "answer": [
                    (sent & ~data_follow, "head"),
                    (sent & in_memory, "read"),
                    (sent, "fetch"),
                ],
                "read": [(sent & self._is_last, "head")],
                "fetch": [(self.o.ready, "put")],
                "put": [(sent & self._is_last, "head"), (sent, "fetch")],
            },
        )
        return m

    def _count(self, m: Module, state: Any, head: Any, taken: Value, sent: Value) -> None:
        """Load ADDRESS and the number of words, and count the words that are moved."""
        bits = max(self._bounds.bits, CONTROL_ADDRESS_WIDTH)
        self._address = address = Signal(32, reset_less=True)
        self._last_address = last_address = Signal(bits + 1, reset_less=True)
        self._left = left = Signal(SIZE_BITS - 1, reset_less=True)  # words behind the next one
        self._is_first = is_first = Signal(reset_less=True)
        self._is_last = is_last = Signal()
        moves = (state.take & taken) | ((state.read | state.put) & sent)
        size_less_1 = (head.size - 1)[:SIZE_BITS]
        m.d.comb += [is_last.eq(left == 0), self.memory.size_less_1.eq(size_less_1)]
        with m.If(state.address):
            m.d.sync += address.eq(self.i.p.data)
        # A HELLO has no data: its ADDRESS is a part of the answer.
        with m.Elif(moves & ~head.kind.hello):
            m.d.sync += address[_WORD_BITS:bits].eq(address[_WORD_BITS:bits] + 1)
        offset = address[:_WORD_BITS] & ~head.kind.hello.replicate(_WORD_BITS)
        with m.If(state.check):
            m.d.sync += [
                last_address.eq(address[: bits + 1] + size_less_1),
                left.eq(words_behind(offset, size_less_1)),
                is_first.eq(1),
            ]
        with m.Elif(moves):
            m.d.sync += [left.eq(left - 1), is_first.eq(0)]

    def _check(self, m: Module, state: Any, head: Any) -> tuple[Signal, Signal]:
        """Return whether the request is refused, and whether it accesses the control window.

        Valid from the state ``begin`` on.
        """
        first, last = self._address, self._last_address
        refused = Signal(reset_less=True)
        to_control = Signal(reset_less=True)
        in_control = first[CONTROL_ADDRESS_WIDTH:] == _CONTROL
        no_carry = last[CONTROL_ADDRESS_WIDTH] == _CONTROL & 1
        whole_words = ~first[:_WORD_BITS].any() & ~head.size[:_WORD_BITS].any()
        reachable = self._bounds.contain(first, last) | (in_control & no_carry & whole_words)
        fits = ~self.memory.size_less_1[-1]
        assert FRAME_DATA_BYTES == 1 << SIZE_BITS - 1
        # A request for no bytes may have any address, and so may a HELLO.
        free = (head.size == 0) | head.kind.hello
        with m.If(state.compare):
            m.d.sync += [
                refused.eq(head.kind.unknown | ~(free | (fits & reachable))),
                to_control.eq(in_control),
            ]
        return refused, to_control

    def _access(self, m: Module, state: Any, head: Any, in_memory: Value, drops: Value) -> None:
        """Access memory and control window."""
        memory, control = self.memory, self.control
        begin, finish = self._address[:_WORD_BITS], self._last_address[:_WORD_BITS]
        stores = state.take & self.i.valid & ~drops
        m.d.comb += [
            memory.write.eq(head.kind.write),
            memory.address.eq(self._bounds.address(self._address, len(memory.address))),
            memory.words.valid.eq(stores & in_memory),
            memory.words.p.data.eq(self.i.p.data),
            memory.words.p.strobe.eq(
                Cat(
                    (~self._is_first | (begin <= byte)) & (~self._is_last | (finish >= byte))
                    for byte in range(WORD_BYTES)
                )
            ),
            memory.words.p.last.eq(self._is_last),
            memory.read.ready.eq(state.read & self.o.ready),
            control.address.eq(Cat(Const(0, _WORD_BITS), self._address[_WORD_BITS:])),
            control.write.eq(stores & ~in_memory),
            control.write_data.eq(self.i.p.data),
            control.read.eq(state.fetch & self.o.ready & ~head.kind.hello),
        ]

    def _answer(self, m: Module, state: Any, head: Any, refused: Value, data_follow: Value) -> None:
        """Output the words of answers, or those that are passed on."""
        o = self.o
        interrupt = Signal(reset_less=True)
        with m.If(state.begin | state.settle):
            m.d.sync += interrupt.eq(self.interrupt)
        assert (Answer.DONE, Answer.REFUSED) == (0, 1)
        first_word = Cat(
            head.number_low,
            refused,
            Const(0, 6),
            interrupt,
            head.size & data_follow.replicate(SIZE_BITS),
            head.number_high,
        )
        m.d.comb += [
            o.valid.eq(
                (state.head & self.i.valid & (self.i.p.mark != Mark.WORD))
                | state.answer
                | (state.read & self.memory.read.valid)
                | state.put
            ),
            o.p.last.eq(state.head | Mux(state.answer, ~data_follow, self._is_last)),
            o.p.left.eq(self._left),
        ]
        with m.If(state.head):
            m.d.comb += o.p.mark.eq(self.i.p.mark)
        with m.Elif(state.answer):
            m.d.comb += o.p.mark.eq(Mark.ANSWER)
        # One hot: a chain of multiplexers would take more LUT4.
        identifies = state.put & head.kind.hello
        sources = [
            (state.head, self.i.p.data),
            (state.answer, first_word),
            (state.read, self.memory.read.payload),
            (state.put & ~head.kind.hello, self.control.read_data),
            (identifies & self._is_first, Const(self._identity, 32)),
            (identifies & ~self._is_first, self._address),
        ]
        m.d.comb += o.p.data.eq(
            reduce(or_, (word & selected.replicate(32) for selected, word in sources))
        )
