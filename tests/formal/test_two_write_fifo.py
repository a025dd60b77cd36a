"""A FIFO with two write ports emits each payload once and in order."""

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal

from bitlane_rtl.streams.two_write_fifo import TwoWriteFifo
from support.formal.contract import Contract, before, taken
from support.formal.proof import Bug, Proof
from support.formal.prover import Reached

pytestmark = pytest.mark.slow

WIDTH = 2
DEPTH = 8


class KeepsOrder(Contract):
    """Any one payload, followed from its entry, leaves after those before it and is what it was."""

    def claim(self, m: Module) -> None:
        m.submodules.queue = queue = TwoWriteFifo(WIDTH, DEPTH)
        self.takes(m, queue.o)
        comes = [self.anything(1, f"comes_{number}") for number in range(2)]
        payloads = [self.anything(WIDTH, f"payload_{number}") for number in range(2)]
        for i, valid, payload in zip(queue.i, comes, payloads, strict=True):
            m.d.comb += [i.valid.eq(valid), i.payload.eq(payload)]
        leaves = taken(queue.o)
        turn, held = Signal(), Signal(range(DEPTH + 1))
        entering = comes[0] + comes[1]
        m.d.sync += [turn.eq(turn ^ comes[0] ^ comes[1]), held.eq(held + entering - leaves)]
        first, second = (Mux(turn, *reversed(comes)), Mux(turn, *comes))
        m.d.comb += [Assume(first | ~second), Assume(held + entering <= DEPTH)]

        # Nothing leaves that did not enter, and what entered is offered two cycles later.
        waits = (held != 0) & ~queue.o.valid
        m.d.comb += [Assert((held != 0) | ~queue.o.valid), Assert(~(waits & before(m, waits)))]

        follows, ahead, value = Signal(), Signal.like(held), Signal(WIDTH)
        one, other = (Mux(turn, *reversed(payloads)), Mux(turn, *payloads))
        picks = self.anything(2, "follow_this")
        starts = ~follows & Mux(picks[1], second, first) & picks[0]
        with m.If(starts):
            m.d.sync += [
                follows.eq(1),
                ahead.eq(held + picks[1] - leaves),
                value.eq(Mux(picks[1], other, one)),
            ]
        with m.Elif(leaves):
            m.d.sync += [follows.eq(follows & (ahead != 0)), ahead.eq(ahead - 1)]
        with m.If(follows & (ahead == 0) & queue.o.valid):
            m.d.comb += Assert(queue.o.payload == value)


def test_a_fifo_with_two_write_ports_keeps_its_order(proof: Proof) -> None:
    proof.holds(KeepsOrder(), Reached)


DUAL = "streams.two_write_fifo"
BUGS = {
    "only one side is emptied": ("turn.eq(turn ^ taken)", "turn.eq(0)"),
    "both sides are emptied": ("front.i.ready & (turn == number)", "front.i.ready"),
    "the other side's payload": ("Mux(turn, second.o.payload, first.o.payload)", "first.o.payload"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    proof.finds(Bug(DUAL, *BUGS[bug]), KeepsOrder(), within=12)
