"""Selects the next burst. It compares banks, but neither rows nor commands."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .burst import ChipLayout, PlacedBurst, Requester

__all__ = ["Arbiter"]


class Arbiter(wiring.Component):
    """Grants the bursts of three requesters, one at a time.

    They are granted in round robin, with one exception: a burst in the same bank as the burst
    before it lets the next requester with a burst in another bank pass, once. The data of that
    burst hides the time of the row change, and streams that began in one bank stay a block apart.

    Members
    -------
    requests
        One bit per `Requester`. A request must stay until it is granted.
    bursts
        The bursts of the requests, one per requester.
    stop
        Grant no burst in this cycle.
    granted
        The requester whose burst is granted in this cycle. ``o`` holds it from the next cycle on.
    o
        The granted burst, from registers.

    Latency: 1 cycle. Throughput: a burst every 2 cycles.
    """

    def __init__(self, layout: ChipLayout) -> None:
        burst = PlacedBurst(layout)
        self._bank_bits = layout.part.bank_bits
        super().__init__(
            {
                "requests": In(len(Requester)),
                "bursts": In(burst).array(len(Requester)),
                "stop": In(1),
                "granted": Out(len(Requester)),
                "o": Out(stream.Signature(burst)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        before = Signal(self._bank_bits)
        first = Signal(range(3))
        passed_over = Signal()
        apart = Cat(
            request & (burst.bank != before)
            for request, burst in zip(self.requests, self.bursts, strict=True)
        )
        fair, hidden = self._round_robin(self.requests, first), self._round_robin(apart, first)
        turn = Signal(3)
        passes = Signal()
        fires = Signal()
        full = Signal()
        burst = Signal.like(self.o.payload, reset_less=True)
        m.d.comb += [
            fires.eq(self.requests.any() & ~full & ~self.stop),
            passes.eq(apart.any() & ~passed_over & (fair != hidden)),
            turn.eq(Mux(passes, hidden, fair)),
            self.granted.eq(turn & fires.replicate(len(Requester))),
            self.o.valid.eq(full),
            self.o.payload.eq(burst),
        ]
        m.d.sync += full.eq(fires | (full & ~self.o.ready))
        with m.If(~full):
            for index, offered in enumerate(self.bursts):
                with m.If(turn[index]):
                    m.d.sync += burst.eq(offered)
        with m.If(full):
            m.d.sync += before.eq(burst.bank)
        with m.If(fires):
            m.d.sync += passed_over.eq(passes)
            with m.If(~passes):
                m.d.sync += first.eq(Mux(turn[0], 1, Mux(turn[1], 2, 0)))
        return m

    @staticmethod
    def _round_robin(requests: Value, first: Value) -> Value:
        """Return which of three requests is granted, one-hot: the first at or after ``first``."""
        a, b, c = requests
        order = {0: (a, b, c), 1: (b, c, a), 2: (c, a, b)}
        chosen = {start: [x, ~x & y, ~x & ~y & z] for start, (x, y, z) in order.items()}
        bits = []
        for index in range(3):
            at = [chosen[start][(index - start) % 3] for start in range(3)]
            bits.append(Mux(first == 0, at[0], Mux(first == 1, at[1], at[2])))
        return Cat(bits)
