"""The CRC-32 of a frame's bytes, a bit a cycle: a byte takes at least 80 cycles on the line."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

__all__ = ["Checksum"]


class Checksum(wiring.Component):
    """Computes the CRC-32 of bytes, the one of `zlib.crc32`, then outputs it or compares it.

    Latency: 9 cycles from a start to a byte of the CRC. Throughput: a byte every 9 cycles.
    Undefined: ``byte`` in the 7 cycles before the 9th.
    Area: 33 LUT4 and 44 flip-flops on iCE40.
    """

    clear: In(1)
    """Reset the CRC: a new frame starts after this cycle."""
    start: In(1)
    """Take ``data``, or with ``closing`` a byte of the CRC."""
    data: In(8)
    """The byte to take."""
    closing: In(1)
    """The data are complete. Sampled in the 8 cycles after ``start``."""
    byte: Out(8)
    """``data`` in the cycle after ``start``. From the 9th cycle after ``start`` on: ``data``, or
    with ``closing`` the next byte of the CRC."""
    busy: Out(1)
    """1 in the 8 cycles after ``start``, in which ``start`` and ``clear`` must be 0."""
    differs: Out(1)
    """1 in one or more of those cycles if ``closing`` is 1 and ``data`` is not the next byte of the
    CRC."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        processor: Any = CRC32_ISO_HDLC(data_width=1).create()
        # Cleared by its reset, because `processor.start` would cost a LUT for each bit.
        m.submodules.processor = ResetInserter(self.clear)(processor)

        byte = Signal(8, reset_less=True)
        step = Signal(4)
        expected: Any = processor.crc[0]
        m.d.comb += [
            self.byte.eq(byte),
            self.busy.eq(step[3]),
            self.differs.eq(self.busy & self.closing & (byte[0] != expected)),
            processor.valid.eq(self.busy),
            # Data that cancel the highest bit make the register shift out the CRC's next bit.
            processor.data.eq(Mux(self.closing, ~expected, byte[0])),
        ]
        with m.If(self.start):
            m.d.sync += [byte.eq(self.data), step.eq(8)]
        with m.Elif(self.busy):
            m.d.sync += [
                byte.eq(Cat(byte[1:], Mux(self.closing, expected, byte[0]))),
                step.eq(step + 1),
            ]
        return m
