"""Receives requests from the line: removes the framing, checks them and buffers the good ones.

It never outputs a byte of a frame that is damaged, or out of turn and not a repetition.
"""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi.frames import CRC_BYTES, RECEIVE_BYTES, REQUEST_HEADER_BYTES, Request
from ..link.sequence_check import Complaint, SequenceCheck
from ..primitives import Ram
from .checksum import Checksum
from .cobs import CobsDecoder
from .uart import Received

__all__ = ["Kind", "RequestReceiver"]

_ADDRESS_BITS = ceil_log2(RECEIVE_BYTES)
_LENGTH_BITS = 10


class Kind(data.Struct):
    """The byte that replaces `Request` in the headers that `RequestReceiver` outputs."""

    write: 1
    hello: 1
    unknown: 1
    """The byte is not a `Request`."""
    repeated: 1
    """The request is a repetition. Undefined with ``hello``."""


@dataclass
class _Header:
    """The properties of a frame, valid once its header is complete."""

    byte: Value
    """The byte to store: the received one, or `Kind` in place of `Request`."""
    length: Signal
    """Bytes of header and data of a WRITE; longer than any frame until the header is complete."""
    write: Signal


class RequestReceiver(wiring.Component):
    """Checks requests and buffers the good ones in a ring of RECEIVE_BYTES.

    A request is good if its CRC is right, its length matches its header, and its number is the
    expected one or one of the REPETITIONS before it; a HELLO may have any number. All other
    requests are dropped, and also those that do not fit into the ring.

    Members
    -------
    i : ``In(Received())``
        The line. At least 8 cycles must pass between two cycles with ``valid``.
    o : ``Out(stream.Signature(8))``
        The requests' headers, with `Kind` in place of `Request`, and data; no CRCs.
    complaint : ``Out(Complaint())``

    Latency: ``o.valid`` 2 cycles after the frame's delimiter was ``i.valid``; ``complaint.valid``
    1.
    Throughput of ``o``: a byte every 2 cycles. The ring holds 2047 bytes; a request takes 4 bytes
    less than it counts in RECEIVE_BYTES, because its CRC is not stored.
    Area: 202 LUT4, 126 flip-flops and 4 RAMs on iCE40.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    """

    i: In(Received())
    o: Out(stream.Signature(8))
    complaint: Out(Complaint())

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.decoder = decoder = CobsDecoder()
        m.submodules.checksum = checksum = Checksum()
        wiring.connect(m, wiring.flipped(self.i), decoder.i)
        end = decoder.end
        byte = checksum.byte
        fresh = Signal()  # `byte` arrived in the previous cycle
        closing = Signal()  # `byte` belongs to the CRC
        m.d.comb += [
            checksum.clear.eq(end),
            checksum.start.eq(decoder.valid),
            checksum.data.eq(decoder.byte),
            checksum.closing.eq(closing),
        ]
        m.d.sync += fresh.eq(decoder.valid)

        # A frame is stored from address `origin` on. If it is good, `origin` moves to its end.
        origin = Signal(_ADDRESS_BITS)
        offset = Signal(_LENGTH_BITS)
        address = Signal(_ADDRESS_BITS)
        crc_bytes = Signal(range(CRC_BYTES + 1))
        m.d.comb += address.eq(origin + offset)
        with m.If(fresh & ~closing):
            m.d.sync += offset.eq(offset + 1)
        with m.If(fresh & closing):
            m.d.sync += crc_bytes.eq(crc_bytes + 1)

        m.submodules.sequence = sequence = SequenceCheck()
        wiring.connect(m, sequence.complaint, wiring.flipped(self.complaint))
        header = self._header(m, byte, fresh, offset, sequence)
        with m.If(decoder.valid):
            m.d.sync += closing.eq(Mux(header.write, offset == header.length, offset[3]))
        with m.If(end):
            m.d.sync += [offset.eq(0), crc_bytes.eq(0), header.length.eq(-1)]

        stored = Signal()
        bad = Signal()
        crc_complete = crc_bytes[-1]
        read_address = self._ring(m, fresh & ~closing & ~bad, address, header.byte, origin)
        # A frame must not fill the ring to the last byte, or the ring would look empty.
        overflow = stored & (address == read_address)
        # Every legal frame is shorter than 768 bytes; a longer one must not look like a short one.
        overlong = (fresh & crc_complete) | offset[-2:].all()
        m.d.sync += stored.eq(fresh & ~closing)
        with m.If(decoder.broken | checksum.differs | overflow | overlong):
            m.d.sync += bad.eq(1)
        with m.If(end):
            m.d.sync += bad.eq(0)

        good = Signal()
        m.d.comb += good.eq(end & crc_complete & ~bad & ~decoder.broken & ~sequence.out_of_turn)
        with m.If(good):
            m.d.sync += origin.eq(address)
        m.d.comb += [sequence.good.eq(good), sequence.dropped.eq(end & ~decoder.empty & ~good)]
        return m

    def _header(
        self, m: Module, byte: Value, fresh: Value, offset: Value, sequence: SequenceCheck
    ) -> _Header:
        kind: Any = Signal(Kind)
        header = _Header(
            byte=Mux(offset == 1, Cat(kind, byte[len(kind.as_value()) :]), byte),
            length=Signal(_LENGTH_BITS, name="length", init=-1),
            write=Signal(name="write"),
        )
        m.d.comb += [
            kind.write.eq(byte == Request.WRITE),
            kind.hello.eq(byte == Request.HELLO),
            kind.unknown.eq(byte > max(Request)),
            kind.repeated.eq(sequence.repeated),
            sequence.number.eq(byte),
        ]
        with m.If(fresh):
            with m.Switch(offset):
                with m.Case(0):
                    m.d.comb += sequence.load.eq(1)
                with m.Case(1):
                    m.d.sync += header.write.eq(kind.write)
                    m.d.comb += sequence.any.eq(kind.hello)
                with m.Case(2):
                    m.d.sync += header.length[:9].eq(byte + REQUEST_HEADER_BYTES)
                with m.Case(3):
                    m.d.sync += header.length[8:].eq(byte + header.length[8])
        return header

    def _ring(self, m: Module, enable: Value, address: Value, byte: Value, end: Value) -> Signal:
        """Store bytes, and output those before address ``end``. Return the next byte's address."""
        # Reads and writes never collide: only bytes of complete frames are read.
        ram = Ram(8, RECEIVE_BYTES, style="block")
        m.submodules.storage = ram.memory
        read_address = Signal(_ADDRESS_BITS)
        valid = Signal()
        pop = Signal()
        m.d.comb += [
            ram.write.addr.eq(address),
            ram.write.data.eq(byte),
            ram.write.en.eq(enable),
            ram.read.addr.eq(read_address),
            self.o.valid.eq(valid),
            self.o.payload.eq(ram.output),
            pop.eq(valid & self.o.ready),
        ]
        m.d.sync += valid.eq((read_address != end) & ~pop)
        with m.If(pop):
            m.d.sync += read_address.eq(read_address + 1)
        with m.If(~valid):
            m.d.sync += ram.load()
        return read_address
