"""Executes requests on memory and control window, one after the other, and answers them.

Nothing of a request is executed unless all of it can be, and no write that is a repetition.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi import CONTROL_BASE, WORD_BYTES
from ..abi.link import (
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
from .receiver import Kind
from .transmitter import AnswerByte

__all__ = ["Bridge"]

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


class Bridge(wiring.Component):
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
    Area (128 KiB of memory): 180 LUT4 and 93 flip-flops on iCE40.

    The numbers in ``left`` and ``count``, and where constants are assigned last, are chosen for
    iCE40: its adders can select between sum and another value, but not negate; its flip-flops can
    be set to constants at no cost, but start as 0.
    """

    i: stream.Interface
    expected: Signal
    complaint: Signal
    answered: Signal
    o: stream.Interface
    memory: Any
    control: Any
    interrupt: Signal

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
        byte = self.i.payload
        popped = Signal()
        told = Signal()
        m.d.comb += [
            popped.eq(self.i.valid & self.i.ready),
            told.eq(self.o.valid & self.o.ready),
        ]

        # States, of which one is 1.
        header = Signal(init=1)
        address = Signal()
        check = Signal()
        decide = Signal()
        choose = Signal()
        take = Signal()  # a byte to write
        fetch = Signal()  # a byte to read
        load = Signal()  # a word that was read
        give = Signal()  # a byte that was read
        tell_number = Signal()
        tell_status = Signal()

        # The header, a byte in each of eight steps.
        step = Signal(3)
        number = Signal(range(SEQUENCES), reset_less=True)
        kind: Any = Signal(Kind, reset_less=True)
        oversize = Signal(reset_less=True)
        first = Signal()
        complains = Signal()
        m.d.comb += [
            first.eq(header & (step == 0)),
            self.answered.eq(first & self.complaint),
        ]
        with m.If(first):
            m.d.sync += [
                number.eq(Mux(self.complaint, self.expected, byte)),
                complains.eq(self.complaint),
            ]
        with m.If(header & (step == 1)):
            m.d.sync += kind.eq(byte)
        with m.If(header & (step == 3)):
            m.d.sync += oversize.eq(byte[_SIZE_BITS - 8 :].any())
        with m.If(header & popped):
            m.d.sync += step.eq(step + 1)

        # Minus the bytes that are left; but a HELLO's is 0 and goes up to HELLO_BYTES.
        left = Signal(_SIZE_BITS)
        empty = Signal()
        none_left = Signal()
        shorten = Signal()
        next_left = Signal(_SIZE_BITS)
        m.d.comb += [
            empty.eq(left == 0),
            none_left.eq(Mux(kind.hello, left[HELLO_BYTES.bit_length() - 1], empty)),
            shorten.eq(address | (choose & ~none_left & (kind.write | self.o.ready))),
            next_left.eq(left + (~shorten).replicate(_SIZE_BITS) + 1),
        ]
        with m.If((header & (step == 2)) | shorten):
            m.d.sync += left[:8].eq(Mux(shorten, next_left, ~byte))
        with m.If((header & (step == 3)) | shorten):
            m.d.sync += left[8:].eq(Mux(shorten, next_left[8:], ~byte))

        # First the address, then bytes on their way to or from the control window.
        word = Signal(32, reset_less=True)
        identity = Signal()  # the next byte is one of _IDENTITY
        m.d.comb += identity.eq(kind.hello & ~left[3] & (~left[2] | ~left[:2].any()))
        with m.If(load):
            m.d.sync += word.eq(self.control.read_data)
        with m.Elif((header & step[2] & popped) | (take & popped) | (give & ~identity)):
            m.d.sync += word.eq(Cat(word[8:], byte))

        # The address of the next byte, and a bit more, to tell a carry.
        count = Signal(max(self._window.bits, CONTROL_ADDRESS_WIDTH) + 1)
        advance = Signal()
        last = Signal(len(count))  # while `check`: the last byte's address
        low_addend = Mux(address, word[:_SIZE_BITS], Mux(check, ~left, 0))
        high_addend = address.replicate(len(count) - _SIZE_BITS)
        m.d.comb += last.eq(count + Cat(low_addend, high_addend) + advance)
        m.d.sync += advance.eq((take & popped) | give)
        with m.If(address | advance):
            m.d.sync += count.eq(Mux(address, Cat(last[:_SIZE_BITS], word[_SIZE_BITS:]), last))
        with m.If(header):
            m.d.sync += count[:_SIZE_BITS].eq(0)
        index = count[:_WORD_BITS]

        # Two cycles decide, one for the adder and one for what follows from its sum.
        above = CONTROL_BASE >> CONTROL_ADDRESS_WIDTH
        within_control = word[CONTROL_ADDRESS_WIDTH:] == above
        whole_words = ~word[:_WORD_BITS].any() & ~left[:_WORD_BITS].any()
        no_carry = last[CONTROL_ADDRESS_WIDTH] == above & 1
        reachable = Signal(reset_less=True)
        to_control = Signal(reset_less=True)
        m.d.sync += reachable.eq(
            self._window.holds(word, last) | (within_control & whole_words & no_carry)
        )
        with m.If(check):
            m.d.sync += to_control.eq(within_control & ~kind.hello)
        allowed = Signal()
        refused = Signal()
        m.d.comb += allowed.eq(
            ~kind.unknown & ~oversize & (empty | (reachable & left[-1] & ~kind.hello))
        )
        with m.If(decide):
            m.d.sync += refused.eq(~allowed)
        with m.If(decide & ~allowed & ~kind.write):
            m.d.sync += [left.eq(0), kind.hello.eq(0)]

        executes = Signal()  # if it is a write
        to_memory = Signal()
        fetched = Signal()
        m.d.comb += [
            executes.eq(~refused & ~kind.repeated),
            to_memory.eq(~to_control & ~kind.hello),
            fetched.eq(~to_memory | self.memory.ready),
            self.i.ready.eq(
                (header & ~self.answered) | (take & (~executes | to_control | self.memory.ready))
            ),
            self.memory.address.eq(self._window.address(count, self._address_width)),
            self.memory.enable.eq(
                (take & self.i.valid & executes & ~to_control) | (fetch & to_memory)
            ),
            self.memory.write.eq(kind.write),
            self.memory.write_data.eq(byte),
            self.control.address.eq(Cat(Const(0, _WORD_BITS), count[_WORD_BITS:])),
            self.control.write.eq(take & self.i.valid & executes & to_control & index.all()),
            self.control.write_data.eq(Cat(word[8:], byte)),
            self.control.read.eq(fetch & to_control & ~index.any()),
        ]

        interrupt = Signal()
        with m.If(tell_number):
            m.d.sync += interrupt.eq(self.interrupt)
        answer = Mux(complains, Answer.EXPECTED, Mux(refused, Answer.REFUSED, Answer.DONE))
        m.d.comb += [
            self.o.valid.eq(tell_number | tell_status | give),
            self.o.payload.last.eq(none_left & ~tell_number),
        ]
        with m.If(tell_number):
            m.d.comb += self.o.payload.byte.eq(number)
        with m.Elif(tell_status):
            m.d.comb += self.o.payload.byte.eq(answer | (interrupt << INTERRUPT_BIT))
        with m.Elif(identity):
            m.d.comb += self.o.payload.byte.eq(Array(_IDENTITY)[(left - 1)[:2]])
        with m.Elif(to_memory):
            m.d.comb += self.o.payload.byte.eq(self.memory.read_data)
        with m.Else():
            m.d.comb += self.o.payload.byte.eq(word)

        complete = Signal()
        m.d.comb += complete.eq(header & popped & (step == 7))
        m.d.sync += [
            header.eq(
                (header & ~self.answered & ~complete)
                | (choose & none_left & ~kind.write)
                | (tell_status & told & none_left)
            ),
            address.eq(complete),
            check.eq(address),
            decide.eq(check),
            choose.eq(
                (decide & kind.write)
                | (tell_status & told & ~none_left)
                | (choose & ~none_left & ~shorten)
                | (take & popped)
                | give
            ),
            take.eq((choose & shorten & kind.write) | (take & ~popped)),
            fetch.eq((choose & shorten & ~kind.write) | (fetch & ~fetched)),
            load.eq(self.control.read),
            give.eq((fetch & fetched & ~self.control.read) | load),
            tell_number.eq(
                self.answered
                | (decide & ~kind.write)
                | (choose & none_left & kind.write)
                | (tell_number & ~told)
            ),
            tell_status.eq((tell_number & told) | (tell_status & ~told)),
        ]
        return m
