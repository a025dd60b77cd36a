"""A UART with eight data bits, no parity and one stop bit (8N1). It handles bytes, not frames.

A byte whose stop bit is missing is never passed on as a good one.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..abi import LEAST_DIVIDER

__all__ = ["LINE_IN", "LINE_OUT", "Received", "UartReceiver", "UartTransmitter"]

# Stubs lag behind Amaranth.
LINE_IN: Any = In(1, init=1)  # type: ignore[call-arg]
LINE_OUT: Any = Out(1, init=1)  # type: ignore[call-arg]
"""A line, which is 1 when idle."""


class Received(wiring.Signature):
    """Signature of received bytes without back-pressure, from the source's side.

    Members
    -------
    valid
        A byte or an error arrives in this cycle.
    byte
        A byte, if neither ``error`` nor ``~valid``; else undefined.
    error
        The stop bit is missing. Undefined while ``valid`` is 0.
    """

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "byte": Out(8), "error": Out(1)})


def _check(divider: int) -> None:
    if divider < LEAST_DIVIDER:
        raise ValueError(f"divider: {divider} clocks per bit; expected {LEAST_DIVIDER} or more")


class UartReceiver(wiring.Component):
    """Receives bytes from a line.

    A start bit is accepted if the line is low for half a bit; every later bit is sampled in its
    middle. After a missing stop bit the receiver waits until the line is high.

    Parameters
    ----------
    divider
        Clocks per bit, 8 or more. At 8 the other side's bits may be 4 % shorter or longer.

    Latency: a byte arrives ``9 * divider + (divider + 1) // 2 + 1`` cycles after the cycle in which
    ``rx`` fell. Throughput: a byte every ``10 * divider`` cycles; no two within ``9 * divider``.
    Area at 8 clocks per bit: 16 LUT4 and 16 flip-flops on iCE40.

    Raises ``ValueError`` if ``divider`` is less than 8.
    """

    rx: LINE_IN
    """The line, 1 when idle. Asynchronous: two flip-flops synchronise it."""
    o: Out(Received())
    """The bytes."""

    def __init__(self, divider: int) -> None:
        _check(divider)
        self._divider = divider
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, level, init=1)

        half = (self._divider + 1) // 2
        timer = Signal(range(self._divider))
        busy = Signal()
        failed = Signal()
        # The start bit is shifted through ahead of the data; at bit 0 it marks them as complete.
        bits = Signal(9, reset_less=True)
        expired = Signal()
        m.d.comb += [
            expired.eq(timer == 0),
            self.o.valid.eq(busy & expired & ~bits[0]),
            self.o.byte.eq(bits[1:]),
            self.o.error.eq(~level),
        ]
        m.d.sync += timer.eq(timer - 1)
        with m.If(self.o.valid | (~busy & (level | failed))):
            m.d.sync += timer.eq(half - 1)
        with m.Elif(expired):
            m.d.sync += timer.eq(self._divider - 1)

        with m.If(expired):
            m.d.sync += bits.eq(Cat(bits[1:], level))
        with m.If(~busy):
            m.d.sync += bits.eq(Cat(Const(0xFF, 8), Const(0, 1)))
        m.d.sync += [
            busy.eq(Mux(busy, ~expired | bits[0], expired & ~level & ~failed)),
            failed.eq(Mux(busy, self.o.valid, failed) & ~level),
        ]
        return m


class UartTransmitter(wiring.Component):
    """Transmits bytes on a line.

    Parameters
    ----------
    divider
        Clocks per bit, 8 or more.

    Latency: ``tx`` falls in the cycle after a transfer. Throughput: a byte every ``10 * divider``
    cycles, without idle time between them.
    Area at 8 clocks per bit: 22 LUT4 and 13 flip-flops on iCE40.

    Raises ``ValueError`` if ``divider`` is less than 8.
    """

    i: In(stream.Signature(8))
    """``ready`` stays 1 until a byte is transferred."""
    tx: LINE_OUT
    """The line, 1 when idle. It is the output of a register."""

    def __init__(self, divider: int) -> None:
        _check(divider)
        self._divider = divider
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timer = Signal(range(self._divider))
        # The stop bit is the last 1 in the register and remains there while the line is idle.
        bits = Signal(10, init=1)
        expired = Signal()
        stopping = Signal()
        m.d.comb += [
            expired.eq(timer == 0),
            stopping.eq(bits[1:] == 0),
            self.i.ready.eq(expired & stopping),
            self.tx.eq(bits[0]),
        ]
        begins = Signal()
        m.d.comb += begins.eq(self.i.ready & self.i.valid)
        with m.If(~expired):
            m.d.sync += timer.eq(timer - 1)
        with m.If((expired & ~stopping) | begins):
            m.d.sync += [
                timer.eq(self._divider - 1),
                bits.eq(Mux(begins, Cat(Const(0, 1), self.i.payload, Const(1, 1)), bits[1:])),
            ]
        return m
