"""Transmits Ethernet frames: preamble, padding, FCS and gap around packets of words."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.crc.catalog import CRC32_ETHERNET
from amaranth.lib.wiring import In, Out

from .gmii import (
    GAP_BYTES,
    LEAST_FRAME_BYTES,
    PREAMBLE,
    PREAMBLE_BYTES,
    START_OF_FRAME,
    Gmii,
)

__all__ = ["MacTransmitter"]

_FCS_BYTES = 4
_LEAST = LEAST_FRAME_BYTES - _FCS_BYTES
_LENGTH_BITS = 11


class _Chosen(data.Struct):
    """The next byte of the line: in place of ``byte`` a byte of the FCS, with ``fcs``.

    ``data``: ``byte`` is a byte that the FCS protects.
    """

    byte: 8
    valid: 1
    error: 1
    data: 1
    fcs: 1


class MacTransmitter(wiring.Component):
    """Makes a frame of each packet.

    =========  =====================================================  ==============================
    State      What is transmitted                                    Next
    =========  =====================================================  ==============================
    gap        nothing, for 12 cycles or more                         preamble, with a packet
    preamble   seven bytes of preamble, and the start of the frame    data
    data       the bytes of the packet                                pad below 60 bytes, else fcs
    pad        zeros                                                  fcs
    fcs        the CRC-32 of the bytes after the start of the frame   gap
    =========  =====================================================  ==============================

    Latency: the preamble's first byte 3 cycles after a packet is valid. Throughput: a byte a cycle;
    24 cycles of each packet are for preamble, gap and FCS.
    Area: 179 LUT4, 9 CCU2C and 80 flip-flops on ECP5. Clock: 224 MHz on ECP5-6.
    """

    i: In(stream.Signature(32))
    """Packets. The first two bytes of a packet, in the low half of its first word, are its length
    in bytes without them, the most significant byte first, from 1 to 1,514. Then the bytes of the
    frame follow, the first in the lowest bits of a word. The next packet starts with a word. While
    a word within a packet is not valid, an error is signalled to the PHY."""
    o: Out(Gmii())
    """Outputs of registers."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chosen: Any = Signal(_Chosen)
        self._choose(m, chosen)
        # Cleared by its reset, because `fcs.start` would cost a LUT for each bit.
        fcs: Any = CRC32_ETHERNET(data_width=8).create()
        m.submodules.fcs = ResetInserter(~chosen.data & ~chosen.fcs)(fcs)
        m.d.comb += [
            fcs.valid.eq(1),
            # Data that cancel the lowest byte make the register shift out the next byte.
            fcs.data.eq(Mux(chosen.fcs, ~fcs.crc[:8], chosen.byte)),
        ]
        m.d.sync += [
            self.o.data.eq(Mux(chosen.fcs, fcs.crc[:8], chosen.byte)),
            self.o.valid.eq(chosen.valid),
            self.o.error.eq(chosen.error),
        ]
        return m

    def _choose(self, m: Module, chosen: Any) -> None:
        """Drive the register ``chosen`` with the next byte of the line."""
        count = Signal(4, init=GAP_BYTES - 1)  # cycles of the state behind this one
        expired = Signal()
        lane = Signal(2)
        left = Signal(_LENGTH_BITS, reset_less=True)
        last = Signal()
        missing = Signal(range(_LEAST))  # bytes up to the least length behind this one
        short = missing.any()
        m.d.comb += [expired.eq(count == 0), last.eq(left == 1)]
        m.d.sync += [chosen.valid.eq(1), Cat(chosen.error, chosen.data, chosen.fcs).eq(0)]
        with m.If(~expired):
            m.d.sync += count.eq(count - 1)
        with m.FSM():
            with m.State("gap"):
                m.d.sync += [
                    chosen.valid.eq(0),
                    left.eq(Cat(self.i.payload[8:16], self.i.payload[:8])),
                    missing.eq(_LEAST - 1),
                    lane.eq(2),
                ]
                with m.If(expired & self.i.valid):
                    m.d.sync += count.eq(PREAMBLE_BYTES)
                    m.next = "preamble"
            with m.State("preamble"):
                m.d.sync += chosen.byte.eq(Mux(expired, START_OF_FRAME, PREAMBLE))
                with m.If(expired):
                    m.next = "data"
            with m.State("data"):
                m.d.comb += self.i.ready.eq(last | (lane == 3))
                m.d.sync += [
                    chosen.byte.eq(self.i.payload.word_select(lane, 8)),
                    chosen.data.eq(self.i.valid),
                    chosen.error.eq(~self.i.valid),
                    count.eq(_FCS_BYTES - 1),
                ]
                with m.If(self.i.valid):
                    m.d.sync += [
                        lane.eq(lane + 1),
                        left.eq(left - 1),
                        missing.eq(missing - short),
                    ]
                    with m.If(last):
                        m.next = "fcs"
                    with m.If(last & short):
                        m.next = "pad"
            with m.State("pad"):
                m.d.sync += [chosen.byte.eq(0), chosen.data.eq(1)]
                m.d.sync += [missing.eq(missing - 1), count.eq(_FCS_BYTES - 1)]
                with m.If(~short):
                    m.next = "fcs"
            with m.State("fcs"):
                m.d.sync += chosen.fcs.eq(1)
                with m.If(expired):
                    m.d.sync += count.eq(GAP_BYTES - 1)
                    m.next = "gap"
