"""Decides whether the payload of UDP is a datagram that a board may execute."""

from typing import Any

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

from ..abi import GOODBYE, Request
from .words import SIZE_BITS, words_behind

__all__ = ["DatagramCheck"]


class DatagramCheck(wiring.Component):
    """Checks the CRC of a datagram, and that its bytes are SESSION, whole frames and the CRC.

    A datagram is also bad if its SESSION is 0, or if a HELLO or GOODBYE has a SIZE or is not its
    only frame. Numbers and addresses are not checked.

    Latency: ``good`` 2 cycles. Throughput: a byte a cycle.
    """

    reset: In(1)
    """No datagram has begun. 1 between two datagrams."""
    valid: In(1)
    """``byte`` is the next byte of a datagram."""
    byte: In(8)
    """A byte of a datagram."""
    good: Out(1)
    """The bytes so far are a datagram."""

    def elaborate(self, platform: object) -> Any:
        m = Module()
        crc: Any = CRC32_ISO_HDLC(data_width=8).create()
        m.submodules.crc = crc
        m.d.comb += [crc.data.eq(self.byte), crc.valid.eq(self.valid)]
        whole = self._follow_frames(m)
        m.d.sync += self.good.eq(crc.match_detected & whole)
        return ResetInserter(self.reset)(m)

    def _follow_frames(self, m: Module) -> Signal:
        """Return whether the bytes so far are SESSION, whole frames, and a CRC."""
        byte = self.byte
        lane = Signal(2)
        m.d.sync += lane.eq(lane + self.valid)
        write = Signal(reset_less=True)
        special = Signal(reset_less=True)  # HELLO or GOODBYE
        size = Signal(SIZE_BITS, reset_less=True)
        left = Signal(SIZE_BITS - 1, reset_less=True)  # words of data behind the next one
        heads = Signal(2)  # frames that began; the CRC looks like the head of a frame
        alone = Signal()  # the only frame must be the one that began
        wrong = Signal()
        known = Signal()  # SESSION is not 0
        whole = Signal()
        last = self.valid & (lane == 3)

        with m.FSM():
            with m.State("session"), m.If(self.valid):
                m.d.sync += known.eq(known | byte.any())
                with m.If(last):
                    m.next = "head"
            with m.State("head"), m.If(self.valid):
                with m.Switch(lane):
                    with m.Case(0):
                        m.d.sync += [heads[0].eq(1), heads[1].eq(heads[0])]
                    with m.Case(1):
                        m.d.sync += write.eq(byte == Request.WRITE)
                        m.d.sync += special.eq((byte == Request.HELLO) | (byte == GOODBYE))
                    with m.Case(2):
                        m.d.sync += size[:8].eq(byte)
                    with m.Case(3):
                        m.d.sync += size[8:].eq(byte)
                        m.next = "address"
            with m.State("address"):
                # Until its first byte, the head may have been the CRC.
                m.d.comb += whole.eq((lane == 0) & heads[1] & known & ~wrong)
                with m.If(self.valid):
                    with m.If(lane == 0):
                        m.d.sync += [
                            left.eq(words_behind(byte[:2], (size - 1)[:SIZE_BITS])),
                            alone.eq(special),
                            wrong.eq(wrong | alone | (special & (size.any() | heads[1]))),
                        ]
                    with m.If(last):
                        m.next = "head"
                        with m.If(write & size.any()):
                            m.next = "data"
            with m.State("data"), m.If(last):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.next = "head"
        return whole
