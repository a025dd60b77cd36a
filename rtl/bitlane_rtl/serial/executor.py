"""Executes requests on memory and control window, one after the other, and answers them.

Nothing of a request is executed unless all of it can be, and no write that is a repetition.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import CONTROL_BASE, WORD_BYTES
from ..abi.frames import (
    FRAME_DATA_BYTES,
    HELLO_BYTES,
    INTERRUPT_BIT,
    LINK_VERSION,
    RECEIVE_BYTES,
    SEQUENCES,
    Answer,
)
from ..configuration import Configuration
from ..ports.byte_access import ByteAccess
from ..ports.control_port import CONTROL_ADDRESS_WIDTH, ControlPort
from .one_hot import ALWAYS, follow
from .receiver import Kind
from .transmitter import AnswerByte

__all__ = ["RequestExecutor"]

_SIZE_BITS = FRAME_DATA_BYTES.bit_length()
_WORD_BITS = (WORD_BYTES - 1).bit_length()
_IDENTITY = (LINK_VERSION, 0, RECEIVE_BYTES & 0xFF, RECEIVE_BYTES >> 8)
"""The first half of HELLO_BYTES; the second is the address."""


class _Window:
    """Whether an access is within memory, in as few gates as its bounds allow."""

    def __init__(self, configuration: Configuration) -> None:
        self._base, self._last = configuration.memory_base, configuration.memory_last
        size = configuration.memory_bytes
        self._aligned = size & (size - 1) == 0 and self._base % size == 0
        self.bits = ((size - 1) if self._aligned else self._last).bit_length()
        """Lowest bits of an address that differ within memory."""

    def holds(self, first: Value, last: Value) -> Value:
        """``last`` has the lowest bits of ``first + size - 1``, one more than `bits` or more."""
        if self._aligned:
            above = self._base >> self.bits
            return (first[self.bits :] == above) & (last[self.bits] == above & 1)
        low = first[: self.bits]
        below = (low >= self._base) & (last[: self.bits + 1] <= self._last)
        return (first[self.bits :] == 0) & below

    def address(self, low: Value, width: int) -> Value:
        """All bits of an address within memory."""
        high = self._base >> self.bits if self._aligned else 0
        return Cat(low[: self.bits], Const(high, 32))[:width]


class _State(data.Struct):
    """Which step of a request is due."""

    header: 1 = 1
    address: 1
    check: 1
    decide: 1
    choose: 1
    """Whether there is another byte."""
    take: 1
    """A byte to write."""
    fetch: 1
    """A byte to read."""
    load: 1
    """A word that was read."""
    give: 1
    """A byte that was read."""
    tell_number: 1
    tell_status: 1


class _Request:
    """The registers of a request during its execution."""

    def __init__(self, address_bits: int) -> None:
        self.state: Any = Signal(_State)
        self.popped = Signal()
        """A byte of it is taken in this cycle."""
        self.header_step = Signal(3)
        """The header's byte that comes next."""
        self.number = Signal(range(SEQUENCES), reset_less=True)
        self.kind: Any = Signal(Kind, reset_less=True)
        self.complains = Signal()
        """A complaint takes the place of a request: the answer reports the expected number."""
        self.oversize = Signal(reset_less=True)
        self.refused = Signal()
        self.to_control = Signal(reset_less=True)
        self.to_memory = Signal()
        self.left = Signal(_SIZE_BITS)
        """Minus the bytes that are left; but a HELLO's is 0 and goes up to HELLO_BYTES."""
        self.none_left = Signal()
        self.identity = Signal()
        """A HELLO's next byte is one of _IDENTITY."""
        self.word = Signal(32, reset_less=True)
        """First the address, then bytes on their way to or from the control window."""
        self.place = Signal(address_bits + 1)
        """The address of the next byte, and a bit more, to tell a carry."""
        self.sum = Signal(address_bits + 1)
        """The next value of ``place``; in ``check`` the address of the last byte."""


class RequestExecutor(wiring.Component):
    """Executes requests.

    Parameters
    ----------
    configuration
        Its ``memory_base`` and ``memory_bytes`` bound what can be accessed.

    Members
    -------
    i : ``In(stream.Signature(8))``
        Requests, as `receiver.RequestReceiver` gives them out.
    expected, complaint, answered
        See there. A complaint is passed on between two requests.
    o : ``Out(stream.Signature(AnswerByte))``
        Answers. ``ready`` must stay 1 until a byte is transferred.
    memory : ``Out(ByteAccess(address_width))``
    control : ``In(ControlPort())``
        The circuit that is controlled.
    interrupt : ``In(1)``
        Level of the interrupt line; the one when an answer's first byte is transferred counts.

    Latency: with a header's last byte transferred in cycle 0, the answer to a READ or a HELLO
    begins in cycle 4, to a WRITE of ``n`` bytes in cycle ``5 + 2 * n``. A READ's first byte comes 3
    cycles after its answer's second byte, a first word of the control window 4.
    Throughput: a byte of a WRITE every 2 cycles, of a READ every 3; a word of the control window
    takes a cycle more when it is read. A memory that is not ready, and ``i`` and ``o`` that are
    not, add their waits.
    Path through it: from ``memory.ready`` to ``i.ready``.
    Area (128 KiB of memory): 181 LUT4 and 93 flip-flops on iCE40.

    The numbers in ``left`` and ``place``, and where constants are assigned last, are chosen for
    iCE40: its adders can select between sum and another value, but not negate; its flip-flops can
    be set to constants at no cost, but start as 0.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._window = _Window(configuration)
        self._address_width = configuration.address_width
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "expected": In(range(SEQUENCES)),
                "complaint": In(1),
                "answered": Out(1),
                "o": Out(stream.Signature(AnswerByte)),
                "memory": Out(ByteAccess(configuration.address_width)),
                "control": In(ControlPort()),
                "interrupt": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request = _Request(max(self._window.bits, CONTROL_ADDRESS_WIDTH))
        kind, none_left, popped = request.kind, request.none_left, request.popped
        told = Signal()
        m.d.comb += [
            popped.eq(self.i.valid & self.i.ready),
            told.eq(self.o.valid & self.o.ready),
        ]
        self._read_header(m, request)
        self._count_bytes(m, request)
        self._keep_word(m, request)
        self._find_place(m, request)
        self._decide(m, request)
        self._access(m, request)
        self._answer(m, request)
        fetched = ~request.to_memory | self.memory.ready
        follow(
            m,
            request.state,
            {
                "header": [
                    (self.answered, "tell_number"),
                    (popped & (request.header_step == 7), "address"),
                ],
                "address": [(ALWAYS, "check")],
                "check": [(ALWAYS, "decide")],
                "decide": [(kind.write, "choose"), (ALWAYS, "tell_number")],
                "choose": [
                    (none_left & kind.write, "tell_number"),
                    (none_left, "header"),
                    (kind.write, "take"),
                    (self.o.ready, "fetch"),
                ],
                "take": [(popped, "choose")],
                "fetch": [(fetched & ~self.control.read, "give"), (self.control.read, "load")],
                "load": [(ALWAYS, "give")],
                "give": [(ALWAYS, "choose")],
                "tell_number": [(told, "tell_status")],
                "tell_status": [(told & none_left, "header"), (told, "choose")],
            },
        )
        return m

    def _read_header(self, m: Module, request: _Request) -> None:
        """Take the header, a byte in each of eight steps."""
        byte = self.i.payload
        header, step = request.state.header, request.header_step
        first = Signal()
        m.d.comb += [
            first.eq(header & (step == 0)),
            self.answered.eq(first & self.complaint),
        ]
        with m.If(first):
            m.d.sync += [
                request.number.eq(Mux(self.complaint, self.expected, byte)),
                request.complains.eq(self.complaint),
            ]
        with m.If(header & (step == 1)):
            m.d.sync += request.kind.eq(byte)
        with m.If(header & (step == 3)):
            m.d.sync += request.oversize.eq(byte[_SIZE_BITS - 8 :].any())
        with m.If(header & request.popped):
            m.d.sync += step.eq(step + 1)

    def _count_bytes(self, m: Module, request: _Request) -> None:
        byte = self.i.payload
        state, kind, left, step = request.state, request.kind, request.left, request.header_step
        shorten = Signal()
        next_left = Signal(_SIZE_BITS)
        at_end = Mux(kind.hello, left[HELLO_BYTES.bit_length() - 1], left == 0)
        goes_on = state.choose & ~request.none_left & (kind.write | self.o.ready)
        m.d.comb += [
            request.none_left.eq(at_end),
            shorten.eq(state.address | goes_on),
            next_left.eq(left + (~shorten).replicate(_SIZE_BITS) + 1),
        ]
        with m.If((state.header & (step == 2)) | shorten):
            m.d.sync += left[:8].eq(Mux(shorten, next_left, ~byte))
        with m.If((state.header & (step == 3)) | shorten):
            m.d.sync += left[8:].eq(Mux(shorten, next_left[8:], ~byte))

    def _keep_word(self, m: Module, request: _Request) -> None:
        state, left, word = request.state, request.left, request.word
        of_address = state.header & request.header_step[2] & request.popped
        identity = request.kind.hello & ~left[3] & (~left[2] | ~left[:2].any())
        m.d.comb += request.identity.eq(identity)
        with m.If(state.load):
            m.d.sync += word.eq(self.control.read_data)
        with m.Elif(of_address | (state.take & request.popped) | (state.give & ~request.identity)):
            m.d.sync += word.eq(Cat(word[8:], self.i.payload))

    def _find_place(self, m: Module, request: _Request) -> None:
        state, word, place = request.state, request.word, request.place
        advance = Signal()
        low_addend = Mux(state.address, word[:_SIZE_BITS], Mux(state.check, ~request.left, 0))
        high_addend = state.address.replicate(len(place) - _SIZE_BITS)
        m.d.comb += request.sum.eq(place + Cat(low_addend, high_addend) + advance)
        m.d.sync += advance.eq((state.take & request.popped) | state.give)
        with m.If(state.address | advance):
            first = Cat(request.sum[:_SIZE_BITS], word[_SIZE_BITS:])
            m.d.sync += place.eq(Mux(state.address, first, request.sum))
        with m.If(state.header):
            m.d.sync += place[:_SIZE_BITS].eq(0)

    def _decide(self, m: Module, request: _Request) -> None:
        """Decide in two cycles: the first adds, the second compares the sum with the bounds."""
        state, kind, word, left = request.state, request.kind, request.word, request.left
        above = CONTROL_BASE >> CONTROL_ADDRESS_WIDTH
        within_control = word[CONTROL_ADDRESS_WIDTH:] == above
        whole_words = ~word[:_WORD_BITS].any() & ~left[:_WORD_BITS].any()
        no_carry = request.sum[CONTROL_ADDRESS_WIDTH] == above & 1
        within_memory = self._window.holds(word, request.sum)
        reachable = Signal(reset_less=True)
        m.d.sync += reachable.eq(within_memory | (within_control & whole_words & no_carry))
        with m.If(state.check):
            m.d.sync += request.to_control.eq(within_control & ~kind.hello)
        m.d.comb += request.to_memory.eq(~request.to_control & ~kind.hello)

        allowed = Signal()
        some_allowed = reachable & left[-1] & ~kind.hello
        m.d.comb += allowed.eq(~kind.unknown & ~request.oversize & ((left == 0) | some_allowed))
        with m.If(state.decide):
            m.d.sync += request.refused.eq(~allowed)
        with m.If(state.decide & ~allowed & ~kind.write):
            m.d.sync += [left.eq(0), kind.hello.eq(0)]

    def _access(self, m: Module, request: _Request) -> None:
        """Reach memory and control window; a write that is not executed is taken and dropped."""
        state, kind, to_control = request.state, request.kind, request.to_control
        executes = Signal()  # if it is a write
        taken = state.take & self.i.valid & executes
        index = request.place[:_WORD_BITS]
        can_take = ~executes | to_control | self.memory.ready
        m.d.comb += [
            executes.eq(~request.refused & ~kind.repeated),
            self.i.ready.eq((state.header & ~self.answered) | (state.take & can_take)),
            self.memory.address.eq(self._window.address(request.place, self._address_width)),
            self.memory.enable.eq((taken & ~to_control) | (state.fetch & request.to_memory)),
            self.memory.write.eq(kind.write),
            self.memory.write_data.eq(self.i.payload),
            self.control.address.eq(Cat(Const(0, _WORD_BITS), request.place[_WORD_BITS:])),
            self.control.write.eq(taken & to_control & index.all()),
            self.control.write_data.eq(Cat(request.word[8:], self.i.payload)),
            self.control.read.eq(state.fetch & to_control & ~index.any()),
        ]

    def _answer(self, m: Module, request: _Request) -> None:
        state, byte = request.state, self.o.payload.byte
        interrupt = Signal()
        with m.If(state.tell_number):
            m.d.sync += interrupt.eq(self.interrupt)
        done = Mux(request.refused, Answer.REFUSED, Answer.DONE)
        answer = Mux(request.complains, Answer.EXPECTED, done)
        m.d.comb += [
            self.o.valid.eq(state.tell_number | state.tell_status | state.give),
            self.o.payload.last.eq(request.none_left & ~state.tell_number),
        ]
        with m.If(state.tell_number):
            m.d.comb += byte.eq(request.number)
        with m.Elif(state.tell_status):
            m.d.comb += byte.eq(answer | (interrupt << INTERRUPT_BIT))
        with m.Elif(request.identity):
            m.d.comb += byte.eq(Array(_IDENTITY)[(request.left - 1)[:2]])
        with m.Elif(request.to_memory):
            m.d.comb += byte.eq(self.memory.read_data)
        with m.Else():
            m.d.comb += byte.eq(request.word)
