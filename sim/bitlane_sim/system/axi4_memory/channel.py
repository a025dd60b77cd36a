"""Parts of the memory's sides: ports, seeded random stalls, and a queue without latency."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from .interface import AddressRange, MemoryControl

CLOCK_BITS = 32
BURSTS = 256


class MemorySide(wiring.Component):
    """The ports of `ReadSide` and `WriteSide`, whose ``channel`` is the number of the first."""

    axi: Any
    control: Any
    storage: Any

    def __init__(
        self,
        addresses: AddressRange,
        channel: int,
        axi: wiring.Signature,
        storage: wiring.Signature,
    ) -> None:
        self._addresses = addresses
        self._channel = channel
        control = MemoryControl(addresses.address_width)
        super().__init__({"axi": In(axi), "control": In(control), "storage": Out(storage)})


class Passage(wiring.Component):
    """Keeps payloads in order until they are taken.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        ``ready`` depends on the number of waiting payloads alone.
    o : ``Out(stream.Signature(shape))``
        ``valid`` and ``payload`` depend on ``i`` while nothing waits.

    Latency: 0 cycles while nothing waits. Throughput: one payload a cycle. Holds ``depth``
    payloads.
    """

    i: Any
    o: Any

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self._shape = shape
        self._depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        payload: Any = Signal(self._shape)
        width = len(payload.as_value())
        m.submodules.fifo = fifo = SyncFIFO(width=width, depth=self._depth)
        m.d.comb += [
            payload.as_value().eq(Mux(fifo.r_rdy, fifo.r_data, self.i.payload.as_value())),
            self.i.ready.eq(fifo.w_rdy),
            self.o.payload.eq(payload),
            self.o.valid.eq(fifo.r_rdy | (self.i.valid & fifo.w_rdy)),
            fifo.r_en.eq(self.o.ready),
            fifo.w_data.eq(self.i.payload.as_value()),
            fifo.w_en.eq(self.i.valid & (fifo.r_rdy | ~self.o.ready)),
        ]
        return m


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


def add_stalls(
    m: Module, control: wiring.PureInterface, first: int, channels: Sequence[str]
) -> list[Signal]:
    """Add a `Stall` for each of ``channels``, numbered from ``first``; return when they stall."""
    stalls = [Stall(first + number) for number in range(len(channels))]
    for name, stall in zip(channels, stalls, strict=True):
        m.submodules[f"stall_{name}"] = stall
        settings = {"chance": f"stall_{name}", "seed": "seed", "load": "seed_load"}
        m.d.comb += [getattr(stall, x).eq(getattr(control, y)) for x, y in settings.items()]
    return [stall.stall for stall in stalls]
