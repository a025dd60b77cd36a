"""Shows the state of the line: in a word of the control window, and by a light that blinks."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..abi import GIGABIT, LINE_STATUS, LINE_STATUS_OFFSET
from ..ports import ControlPort
from .gmii import Gmii

__all__ = ["LineStatus"]


class LineStatus(wiring.Component):
    """Adds the word `abi.line_status` to a control window.

    Parameters
    ----------
    clock_hz
        Clocks of ``sync`` a second.

    Latency: none from ``i`` to ``o`` and back; some cycles to the word. Throughput: an access a
    cycle.
    Area: 31 LUT4, 22 CCU2C and 60 flip-flops on ECP5.
    """

    rx: In(Gmii())
    """The line from the PHY, in the domain ``rx``. Between frames it carries the PHY's status."""
    damaged: In(1)
    """A damaged frame ended, in the domain ``rx``. Of two within 4 cycles of ``sync``, neither may
    be counted."""
    i: Out(ControlPort())
    """The window with the word."""
    o: In(ControlPort())
    """The window without it. Reads 0 at its address."""
    blink: Out(1)
    """Blinks 0.7 to 1.4 times a second while the PHY reports a link that is not a gigabit."""

    def __init__(self, clock_hz: int) -> None:
        self._count_bits = clock_hz.bit_length()
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state = Signal(LINE_STATUS["PRESENT"].low)  # the fields below it
        reported = Signal.like(state)
        odd = Signal()  # the damaged frames are an odd number
        with m.If(~self.rx.valid & ~self.rx.error):
            m.d.rx += reported.eq(self.rx.data)
        m.d.rx += odd.eq(odd ^ self.damaged)

        odd_here, odd_before = Signal(), Signal()
        m.submodules.state = FFSynchronizer(reported, state)
        m.submodules.odd = FFSynchronizer(odd, odd_here)
        count = Signal(LINE_STATUS["DAMAGED"].width)
        m.d.sync += [odd_before.eq(odd_here), count.eq(count + (odd_here ^ odd_before))]
        low = LINE_STATUS["DAMAGED"].low
        word: Any = Cat(state, Const(1, low - len(state)), count)

        here = Signal()
        m.d.sync += here.eq(self.i.read & (self.i.address == LINE_STATUS_OFFSET))
        for name in ("address", "write", "write_data", "read"):
            m.d.comb += getattr(self.o, name).eq(getattr(self.i, name))
        m.d.comb += self.i.read_data.eq(self.o.read_data | (word & here.replicate(32)))

        time = Signal(self._count_bits)
        m.d.sync += time.eq(time + 1)
        slow = state[0] & (state[1:3] != GIGABIT)
        m.d.comb += self.blink.eq(slow & time[-1])
        return m
