"""Two readers share a port in round robin; requests pass unaltered, beats reach their reader."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from bitlane_rtl.ports.read_arbiter import ReadArbiter
from support.formal.contract import Contract, before, taken
from support.formal.proof import Bug, Proof
from support.formal.prover import Reached

pytestmark = pytest.mark.slow

ADDRESS_WIDTH = 1
DATA_WIDTH = 1
BURSTS = 4


class SharesInTurn(Contract):
    """A burst, tracked from its request, gets its beats after the beats of all earlier bursts.

    The memory may send any number of beats, from the cycle after a request is valid on, and accept
    the request later; readers accept beats at any time. The address of a request is the number of
    its reader.
    """

    def __init__(self, *, block_ram: bool = False) -> None:
        super().__init__()
        self._block_ram = block_ram

    def claim(self, m: Module) -> None:
        arbiter = ReadArbiter(ADDRESS_WIDTH, DATA_WIDTH, BURSTS, block_ram=self._block_ram)
        m.submodules.arbiter = arbiter
        a, b, port = arbiter.a, arbiter.b, arbiter.port
        for number, reader in enumerate((a, b)):
            self.offers(m, reader.request)
            m.d.comb += Assume(reader.request.payload.address == number)
            self.takes(m, reader.data)
        self.takes(m, port.request)
        self.offers(m, port.data)

        # Open from the first cycle of its request on.
        open_bursts = Signal(range(BURSTS + 2))
        shown = before(m, port.request.valid & ~port.request.ready)
        ends = taken(port.data) & port.data.payload.last
        m.d.sync += open_bursts.eq(open_bursts + (port.request.valid & ~shown) - ends)
        m.d.comb += [Assume(~port.data.valid | (open_bursts != 0)), Assert(open_bursts <= BURSTS)]

        self._requests(m, a, b, port, shown | (open_bursts != BURSTS))
        self._beats(m, a, b, port, port.request.valid & ~shown, open_bursts)

    def _requests(self, m: Module, a: Any, b: Any, port: Any, may: Value) -> None:
        to_a, to_b = taken(a.request), taken(b.request)
        asked = a.request.valid | b.request.valid
        m.d.comb += [
            Assert(to_a + to_b == taken(port.request)),
            Assert(port.request.valid == (asked & may)),
        ]
        for mine, reader, other in ((to_a, a, b), (to_b, b, a)):
            owed = Signal()
            with m.If(mine):
                m.d.comb += [
                    Assert(port.request.payload == reader.request.payload),
                    Assert(~owed),  # a waiting reader misses one grant at most
                ]
            with m.If(mine & other.request.valid):
                m.d.sync += owed.eq(1)
            with m.Elif(taken(other.request)):
                m.d.sync += owed.eq(0)

    def _beats(
        self, m: Module, a: Any, b: Any, port: Any, opens: Value, open_bursts: Signal
    ) -> None:
        m.d.comb += Assert(taken(a.data) + taken(b.data) == taken(port.data))
        ends = taken(port.data) & port.data.payload.last
        follows, of_b = Signal(), Signal()
        ahead = Signal.like(open_bursts)
        with m.If(opens & ~follows & self.anything(1, "follow_this")):
            of_b_now = port.request.payload.address
            m.d.sync += [follows.eq(1), of_b.eq(of_b_now), ahead.eq(open_bursts - ends)]
        with m.Elif(ends):
            m.d.sync += [ahead.eq(ahead - 1), follows.eq(follows & (ahead != 0))]
        due = follows & (ahead == 0)
        settled = due & before(m, follows)  # block RAM delivers the order a cycle later
        for reader, mine in ((a, ~of_b), (b, of_b)):
            with m.If(due & reader.data.valid):
                m.d.comb += [Assert(mine), Assert(reader.data.payload == port.data.payload)]
        with m.If(settled & port.data.valid):
            m.d.comb += Assert(port.data.ready == Mux(of_b, b.data.ready, a.data.ready))


@pytest.mark.parametrize("block_ram", [False, True])
def test_readers_share_in_turn(block_ram: bool, proof: Proof) -> None:
    proof.holds(SharesInTurn(block_ram=block_ram), Reached)


ARBITER = "ports.read_arbiter"
BUGS = {
    "grants change": ("prefer_second.eq(choice ^ taken)", "prefer_second.eq(~choice)"),
    "first goes first": ("second & (prefer_second | ~first)", "second & ~first"),
    "order is not awaited": ("port.data.valid & order.o.valid & ~to_b", "port.data.valid & ~to_b"),
    "order moves at each beat": (
        "port.data.valid & port.data.ready & port.data.payload.last",
        "taken",
    ),
    "too many bursts": (
        "taken.eq(port.request.ready & (order.i.ready | shown))",
        "taken.eq(port.request.ready)",
    ),
    "a request that waits is remembered twice": ("requested & ~shown", "requested"),
    "a request is withdrawn": (
        "port.request.valid.eq(requested & (order.i.ready | shown))",
        "port.request.valid.eq(requested & order.i.ready)",
    ),
    "beats must wait until their request is accepted": (
        "requested & ~shown",
        "port.request.valid & port.request.ready",
    ),
    "request of the other": (
        "Mux(grant_b, b.request.payload, a.request.payload)",
        "Mux(b.request.valid, b.request.payload, a.request.payload)",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    proof.finds(
        Bug(ARBITER, *BUGS[bug]), SharesInTurn(block_ram=bug == "order is not awaited"), within=14
    )
