"""Knows whether a session is alive: for some seconds after its last datagram."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import SESSION_SECONDS

__all__ = ["SessionTimer"]


class SessionTimer(wiring.Component):
    """Counts ticks of half a second to a second since the last datagram of a session.

    A tick is the overflow of a counter, which needs no comparison.

    Parameters
    ----------
    clock_hz
        Clocks a second, 8 or more.

    Latency: 1 cycle. Raises ``ValueError`` if ``clock_hz`` is below 8.
    """

    restart: In(1)
    """A datagram of the session arrived."""
    stop: In(1)
    """The session ended. Has priority."""
    alive: Out(1)
    """The session is alive: 0 after reset, and between SESSION_SECONDS and twice that after the
    last ``restart``."""

    def __init__(self, clock_hz: int) -> None:
        if clock_hz < 8:
            raise ValueError(f"clock_hz: {clock_hz}; expected 8 or more")
        self._tick_bits = clock_hz.bit_length() - 1
        # The first tick may come at once.
        self._ticks = -(-SESSION_SECONDS * clock_hz >> self._tick_bits) + 1
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(self._tick_bits)
        tick = Signal()
        ticks = Signal(range(self._ticks + 1))
        m.d.sync += Cat(count, tick).eq(count + 1)
        m.d.comb += self.alive.eq(ticks != 0)
        with m.If(tick & self.alive):
            m.d.sync += ticks.eq(ticks - 1)
        with m.If(self.restart):
            m.d.sync += ticks.eq(self._ticks)
        with m.If(self.stop):
            m.d.sync += ticks.eq(0)
        return m
