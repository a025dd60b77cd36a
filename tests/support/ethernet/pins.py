"""Pins with a double data rate, for Amaranth's simulator, which has none."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, Mux, Signal
from amaranth.lib import io


def _buffer(buffer: io.DDRBuffer) -> Module:
    """Return the circuit of a buffer whose port has signals in place of pins.

    A bit at the falling edge is valid together with the one at the rising edge before it.
    """
    m = Module()
    port: Any = buffer.port
    if buffer.direction is io.Direction.Input:
        rising = Signal.like(port.i)
        falling = Signal.like(port.i)
        m.domains.falling = ClockDomain(local=True, reset_less=True, clk_edge="neg")
        m.d.comb += ClockSignal("falling").eq(ClockSignal())
        m.d.sync += [rising.eq(port.i), buffer.i[0].eq(rising), buffer.i[1].eq(falling)]
        m.d.falling += falling.eq(port.i)
    else:
        first, second = Signal.like(port.o), Signal.like(port.o)
        m.d.sync += [first.eq(buffer.o[0]), second.eq(buffer.o[1])]
        m.d.comb += port.o.eq(Mux(ClockSignal(), first, second))
    return m


PLATFORM: Any = SimpleNamespace(get_io_buffer=_buffer)
"""The part of a platform that `amaranth.lib.io` uses."""
