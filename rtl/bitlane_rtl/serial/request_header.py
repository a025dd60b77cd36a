"""Reads the header of a request, a byte at a time. It executes nothing and checks no address."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..abi.frames import FRAME_DATA_BYTES, REQUEST_HEADER_BYTES, SEQUENCES
from ..link.sequence_check import Complaint
from .receiver import Kind

__all__ = ["RequestHeader"]

_SIZE_HIGH_BITS = FRAME_DATA_BYTES.bit_length() - 8
"""Bits of SIZE's upper byte that a legal SIZE can set."""


class RequestHeader(wiring.Component):
    """Reads the 8 bytes of a header, or a complaint of the receiver in place of a request.

    Members
    -------
    enable : ``In(1)``
        Read a header. Must be 0 in the cycle after ``complete`` or ``complaint.answered``.
    i : ``In(stream.Signature(8))``
        Requests, as `receiver.RequestReceiver` outputs them.
    complaint : ``In(Complaint())``
        Taken only before a header's first byte, and has priority.
    complete : ``Out(1)``
        The header's last byte is transferred in this cycle.
    size_low, size_high : ``Out(1)``
        The next byte is the lower or the upper byte of SIZE.
    address_byte : ``Out(1)``
        A byte of ADDRESS is transferred in this cycle.
    number : ``Out(8)``
        SEQUENCE of the request; after a complaint the expected number.
    complained : ``Out(1)``
        A complaint was taken, not a header.
    kind : ``Out(Kind)``
    oversize : ``Out(1)``
        SIZE is 1024 or more.

    Latency: 1 cycle from a byte to the output that holds it. Throughput: a byte a cycle.
    """

    enable: In(1)
    i: In(stream.Signature(8))
    complaint: In(Complaint())
    complete: Out(1)
    size_low: Out(1)
    size_high: Out(1)
    address_byte: Out(1)
    number: Out(range(SEQUENCES))
    complained: Out(1)
    kind: Out(Kind)
    oversize: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        byte = self.i.payload
        position = Signal(range(REQUEST_HEADER_BYTES))  # of the next byte
        first = Signal()
        taken = Signal()
        number = Signal(range(SEQUENCES), reset_less=True)
        complained = Signal(reset_less=True)
        kind = Signal(Kind, reset_less=True)
        oversize = Signal(reset_less=True)
        m.d.comb += [
            self.number.eq(number),
            self.complained.eq(complained),
            self.kind.eq(kind),
            self.oversize.eq(oversize),
            first.eq(self.enable & (position == 0)),
            self.complaint.answered.eq(first & self.complaint.valid),
            self.i.ready.eq(self.enable & ~self.complaint.answered),
            taken.eq(self.i.ready & self.i.valid),
            self.size_low.eq(self.enable & (position == 2)),
            self.size_high.eq(self.enable & (position == 3)),
            self.address_byte.eq(taken & position[2]),
            self.complete.eq(taken & (position == REQUEST_HEADER_BYTES - 1)),
        ]
        # A register loads in every cycle at its position, and so last in that of the transfer:
        # a condition without ``valid`` takes fewer LUT4.
        with m.If(first):
            m.d.sync += [
                number.eq(Mux(self.complaint.valid, self.complaint.expected, byte)),
                complained.eq(self.complaint.valid),
            ]
        with m.If(self.enable & (position == 1)):
            m.d.sync += kind.eq(byte)
        with m.If(self.size_high):
            m.d.sync += oversize.eq(byte[_SIZE_HIGH_BITS:].any())
        with m.If(taken):
            m.d.sync += position.eq(position + 1)
        return m
