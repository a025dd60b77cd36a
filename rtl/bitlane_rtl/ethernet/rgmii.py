"""The pins of an RGMII 2.0 PHY at a gigabit: two nibbles a cycle, one at each edge of the clock.

The delays between clocks and data, which RGMII needs, are made by the PHY or by the pins' cells. No
logic here depends on them.
"""

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from .gmii import Gmii

__all__ = ["RgmiiReceiver", "RgmiiTransmitter"]


class RgmiiReceiver(wiring.Component):
    """Joins the nibbles that a PHY sends, also between frames, where they are its status.

    Parameters
    ----------
    data, control
        The pins RXD, of 4 bits, and RX_CTL.

    The domain ``sync`` is that of RXC. Latency: that of the pins' cells. Throughput: a byte a
    cycle.
    """

    o: Out(Gmii())
    """The bytes from the PHY."""

    def __init__(self, data: Any, control: Any) -> None:
        self._data, self._control = data, control
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.data = data = io.DDRBuffer(io.Direction.Input, self._data)
        m.submodules.control = control = io.DDRBuffer(io.Direction.Input, self._control)
        m.d.comb += [
            self.o.data.eq(Cat(data.i[0], data.i[1])),
            self.o.valid.eq(control.i[0]),
            self.o.error.eq(control.i[0] ^ control.i[1]),
        ]
        return m


class RgmiiTransmitter(wiring.Component):
    """Sends bytes in nibbles to a PHY, with the clock.

    Parameters
    ----------
    data, control, clock
        The pins TXD, of 4 bits, TX_CTL and TXC.

    Edges of data and clock leave at the same time. Latency: that of the pins' cells. Throughput: a
    byte a cycle.
    """

    i: In(Gmii())
    """The bytes to the PHY."""

    def __init__(self, data: Any, control: Any, clock: Any) -> None:
        self._data, self._control, self._clock = data, control, clock
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.data = data = io.DDRBuffer(io.Direction.Output, self._data)
        m.submodules.control = control = io.DDRBuffer(io.Direction.Output, self._control)
        m.submodules.clock = clock = io.DDRBuffer(io.Direction.Output, self._clock)
        m.d.comb += [
            Cat(data.o[0], data.o[1]).eq(self.i.data),
            control.o[0].eq(self.i.valid),
            control.o[1].eq(self.i.valid ^ self.i.error),
            clock.o[0].eq(1),
            clock.o[1].eq(0),
        ]
        return m
