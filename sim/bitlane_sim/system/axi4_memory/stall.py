"""Seeded random stalls for one channel."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Stall"]

# Spreads the seeds of the channels over the numbers (2**32 divided by the golden ratio, odd).
_SPREAD = 0x9E37_79B9

# A linear congruential generator of full period (Numerical Recipes): cheap to simulate, and its
# highest bits, the only ones in use, are random enough.
_FACTOR, _OFFSET = 1664525, 1013904223


class Stall(wiring.Component):
    """Draws a fresh random number every cycle.

    Parameters
    ----------
    channel : int
        Channels with different numbers stall independently of each other.

    Members
    -------
    chance : ``In(9)``
        Chance in 256 of a stall; from 256 on there is always one.
    seed, load : ``In(32)``, ``In(1)``
        While ``load`` is high, the draws start again from ``seed``.
    stall : ``Out(1)``
        Whether to stall in this cycle.

    Latency: ``stall`` follows ``chance`` in the same cycle, ``load`` in the next one.
    """

    chance: Signal
    seed: Signal
    load: Signal
    stall: Signal

    def __init__(self, channel: int) -> None:
        self._salt = (channel + 1) * _SPREAD % (1 << 32)
        super().__init__({"chance": In(9), "seed": In(32), "load": In(1), "stall": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state = Signal(32, init=self._salt)
        m.d.comb += self.stall.eq(state[24:] < self.chance)
        m.d.sync += state.eq(state * _FACTOR + _OFFSET)
        with m.If(self.load):
            m.d.sync += state.eq(self.seed + self._salt)
        return m
