"""Receives requests from the line: removes the framing, checks them and buffers the good ones.

It never outputs a word of a frame that is damaged, or out of turn and not a repetition.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import HELLO_BYTES, RECEIVE_BYTES, REQUEST_HEADER_BYTES, WORD_BYTES, Request
from ..link import SIZE_BITS, Complaint, Kind, RequestHead, RequestWord, SequenceCheck
from ..primitives import Ram
from .checksum import Checksum
from .cobs import CobsDecoder
from .uart import Received

__all__ = ["RequestReceiver"]

_RING_WORDS = RECEIVE_BYTES // WORD_BYTES
_ADDRESS_BITS = ceil_log2(_RING_WORDS)
_HEADER_WORDS = REQUEST_HEADER_BYTES // WORD_BYTES


class RequestReceiver(wiring.Component):
    """Checks requests and buffers the good ones in a ring of RECEIVE_BYTES.

    A request is good if its CRC is right, its length matches its header, and its number is the
    expected one or one of the REPETITIONS before it; a HELLO may have any number. All other
    requests are dropped, and also those that do not fit into the ring.

    Latency: ``o.valid`` 2 cycles after the frame's delimiter was ``i.valid``; ``complaint.valid``
    1.
    Throughput of ``o``: a word every 2 cycles. The ring holds 511 words; a request takes a word
    less than it counts in RECEIVE_BYTES, because its CRC is not stored.
    Area: 256 LUT4, 175 flip-flops and 4 RAMs on iCE40.
    Undefined: ``o.p.data`` while ``o.valid`` is 0.
    """

    i: In(Received())
    """The line. At least 8 cycles must pass between two cycles with ``valid``."""
    o: Out(stream.Signature(RequestWord))
    """The requests: their headers, the first word of which is a `RequestHead`, and the words of
    their data; no CRCs."""
    complaint: Out(Complaint())
    """The complaint about dropped requests."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.decoder = decoder = CobsDecoder()
        m.submodules.checksum = checksum = Checksum()
        m.submodules.sequence = self._sequence = sequence = SequenceCheck()
        wiring.connect(m, wiring.flipped(self.i), decoder.i)
        wiring.connect(m, sequence.complaint, wiring.flipped(self.complaint))
        end = decoder.end
        fresh = Signal()  # `checksum.byte` arrived in the previous cycle
        closing = Signal()  # it belongs to the CRC
        m.d.sync += fresh.eq(decoder.valid)
        m.d.comb += [
            checksum.clear.eq(end),
            checksum.start.eq(decoder.valid),
            checksum.data.eq(decoder.byte),
            checksum.closing.eq(closing),
        ]

        word = Signal(32, reset_less=True)  # of the last four bytes
        lane = Signal(range(WORD_BYTES))  # of the next byte
        fills, filled = Signal(), Signal()  # `word`, in this cycle or in the previous one
        complete = Signal()  # the CRC
        m.d.comb += fills.eq(fresh & lane.all())
        m.d.sync += [filled.eq(fills & ~closing), complete.eq(complete | (fills & closing))]
        with m.If(fresh):
            m.d.sync += [word.eq(Cat(word[8:], checksum.byte)), lane.eq(lane + 1)]

        # A frame is stored from address `origin` on. If it is good, `origin` moves to its end.
        origin = Signal(_ADDRESS_BITS)
        index = Signal(_ADDRESS_BITS)
        address = Signal(_ADDRESS_BITS)
        m.d.comb += address.eq(origin + index)
        m.d.sync += index.eq(index + filled)
        next_word = Cat(word[8:], checksum.byte)
        self._check_number(m, next_word, fills & (index == 0))
        stored, length = self._follow_header(m, word, filled, index)
        with m.If(decoder.valid):
            m.d.sync += closing.eq(closing | (index == length))
        with m.If(end):
            m.d.sync += [lane.eq(0), index.eq(0), closing.eq(0), complete.eq(0), length.eq(-1)]

        bad, late = Signal(), Signal()
        read_address = self._ring(m, filled & ~bad, address, stored, origin)
        m.d.sync += late.eq(filled)
        # A frame must not fill the ring to the last word, or the ring would look empty.
        overflow = late & (address == read_address)
        with m.If(decoder.broken | checksum.differs | overflow | (fresh & complete)):
            m.d.sync += bad.eq(1)
        with m.If(end):
            m.d.sync += bad.eq(0)

        good = Signal()
        m.d.comb += good.eq(end & complete & ~bad & ~decoder.broken & ~sequence.out_of_turn)
        with m.If(good):
            m.d.sync += origin.eq(address)
        m.d.comb += [sequence.good.eq(good), sequence.dropped.eq(end & ~decoder.empty & ~good)]
        return m

    def _check_number(self, m: Module, word: Value, valid: Value) -> None:
        """Compare the number in the first word of a frame; the result is valid a cycle later."""
        head: Any = data.View(RequestHead, word)
        m.d.comb += [
            self._sequence.load.eq(valid),
            self._sequence.number.eq(Cat(head.number_low, head.number_high)),
            self._sequence.any.eq(valid & (head.kind.as_value() == Request.HELLO)),
        ]

    def _follow_header(
        self, m: Module, word: Value, filled: Value, index: Signal
    ) -> tuple[Value, Signal]:
        """Return the word to store, and the frame's words before the CRC.

        These are more than any frame has until the header is complete.
        """
        head: Any = data.View(RequestHead, word)
        request = head.kind.as_value()
        kind: Any = Signal(Kind)
        is_hello, sized = request == Request.HELLO, head.size.any()
        m.d.comb += [
            kind.write.eq(request == Request.WRITE),
            kind.hello.eq(is_hello & ~sized),
            kind.unknown.eq((request > max(Request)) | (is_hello & sized)),
            kind.repeated.eq(self._sequence.repeated),
        ]
        size = head.size | Mux(kind.hello, HELLO_BYTES, 0)
        stored_head = Cat(head.number_low, kind, size, head.number_high)
        has_data = Signal(reset_less=True)
        size_taken = Signal(SIZE_BITS, reset_less=True)
        length = Signal(_ADDRESS_BITS, init=-1)
        with m.If(filled & (index == 0)):
            m.d.sync += [has_data.eq(kind.write & sized), size_taken.eq(head.size)]
        with m.If(filled & (index == 1)):
            # Bytes of header and data, up to the end of the last word.
            total = (word[:2] + REQUEST_HEADER_BYTES + WORD_BYTES - 1) + size_taken
            m.d.sync += length.eq(Mux(has_data, total[2:], _HEADER_WORDS))
        return Mux(index == 0, stored_head, word), length

    def _ring(self, m: Module, enable: Value, address: Value, word: Value, end: Value) -> Signal:
        """Store words, and output those before address ``end``. Return the next word's address."""
        # Reads and writes never collide: only words of complete frames are read.
        ram = Ram(32, _RING_WORDS, style="block")
        m.submodules.storage = ram.memory
        read_address = Signal(_ADDRESS_BITS)
        valid = Signal()
        pop = Signal()
        m.d.comb += [
            ram.write.addr.eq(address),
            ram.write.data.eq(word),
            ram.write.en.eq(enable),
            ram.read.addr.eq(read_address),
            self.o.valid.eq(valid),
            self.o.p.data.eq(ram.output),
            pop.eq(valid & self.o.ready),
        ]
        m.d.sync += valid.eq((read_address != end) & ~pop)
        with m.If(pop):
            m.d.sync += read_address.eq(read_address + 1)
        with m.If(~valid):
            m.d.sync += ram.load()
        return read_address
