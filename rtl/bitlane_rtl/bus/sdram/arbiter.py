"""Chooses whose burst goes next. Knows banks, but neither rows nor commands."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .burst import ChipLayout, PlacedBurst, Requester

__all__ = ["Arbiter"]


class Arbiter(wiring.Component):
    """Takes bursts of four requesters, one at a time.

    The host goes first. The others go in turn, but one whose bank is that of the burst before
    lets the next one go whose bank is not, once: what a row's change costs is then hidden behind
    that one's data, and streams that began in one bank stay a block apart.

    Members
    -------
    asks : ``In(4)``
        Who asks, by `Requester`; must stay until taken.
    bursts : ``In(PlacedBurst(layout))``, one for each
    stop : ``In(1)``
        Take none, in this cycle.
    taken : ``Out(4)``
        Whose burst is taken, in this cycle. ``o`` holds it from the next on.
    o : ``Out(stream.Signature(PlacedBurst(layout)))``
        From registers.

    Latency: 1 cycle. Throughput: a burst every 2 cycles.
    """

    def __init__(self, layout: ChipLayout) -> None:
        burst = PlacedBurst(layout)
        self._bank_bits = layout.part.bank_bits
        super().__init__(
            {
                "asks": In(len(Requester)),
                "bursts": In(burst).array(len(Requester)),
                "stop": In(1),
                "taken": Out(len(Requester)),
                "o": Out(stream.Signature(burst)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        before = Signal(self._bank_bits)
        first = Signal(range(3))
        passed_over = Signal()
        host = self.asks[Requester.HOST.value]
        apart = Cat(
            asks & (burst.bank != before)
            for asks, burst in zip(self.asks[:3], self.bursts, strict=False)
        )
        fair, hidden = self._in_turn(self.asks[:3], first), self._in_turn(apart, first)
        turn = Signal(3)
        passes = Signal()
        goes = Signal()
        full = Signal()
        burst = Signal.like(self.o.payload, reset_less=True)
        chosen = Mux(host, 1 << Requester.HOST.value, turn)
        m.d.comb += [
            goes.eq(self.asks.any() & ~full & ~self.stop),
            passes.eq(apart.any() & ~passed_over & (fair != hidden)),
            turn.eq(Mux(passes, hidden, fair)),
            self.taken.eq(chosen & goes.replicate(len(Requester))),
            self.o.valid.eq(full),
            self.o.payload.eq(burst),
        ]
        m.d.sync += full.eq(goes | (full & ~self.o.ready))
        with m.If(~full):
            for index, asked in enumerate(self.bursts):
                with m.If(chosen[index]):
                    m.d.sync += burst.eq(asked)
        with m.If(full):
            m.d.sync += before.eq(burst.bank)
        with m.If(goes & ~host):
            m.d.sync += passed_over.eq(passes)
            with m.If(~passes):
                m.d.sync += first.eq(Mux(turn[0], 1, Mux(turn[1], 2, 0)))
        return m

    @staticmethod
    def _in_turn(asks: Value, first: Value) -> Value:
        """The one of three, as a bit, that asks and comes first from ``first`` on."""
        a, b, c = asks
        order = {0: (a, b, c), 1: (b, c, a), 2: (c, a, b)}
        chosen = {start: [x, ~x & y, ~x & ~y & z] for start, (x, y, z) in order.items()}
        bits = []
        for index in range(3):
            at = [chosen[start][(index - start) % 3] for start in range(3)]
            bits.append(Mux(first == 0, at[0], Mux(first == 1, at[1], at[2])))
        return Cat(bits)
