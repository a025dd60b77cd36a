"""Two writers share a port in turn; a burst's beats stay together with its request."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from bitlane_rtl.ports.write_arbiter import WriteArbiter
from support.formal.contract import Contract, before, taken
from support.formal.proof import Bug, Proof
from support.formal.prover import Reached

pytestmark = pytest.mark.slow

ADDRESS_WIDTH = 1
DATA_WIDTH = 8
BURSTS = 2


class WritesInTurn(Contract):
    """A burst is complete before the next begins; requests, beats and responses pass unaltered.

    Writers may offer beats before the request of their burst, and the memory may accept them before
    it. The memory responds at any time after its burst is complete. The address of a request is the
    number of its writer. All beats are the same but for ``strobe`` and ``last``.
    """

    def claim(self, m: Module) -> None:
        m.submodules.arbiter = arbiter = WriteArbiter(ADDRESS_WIDTH, DATA_WIDTH, BURSTS)
        a, b, port = arbiter.a, arbiter.b, arbiter.port
        for number, writer in enumerate((a, b)):
            self.offers(m, writer.request)
            self.offers(m, writer.data)
            self.takes(m, writer.response)
            m.d.comb += [
                Assume(writer.request.payload.address == number),
                Assume(writer.request.payload.length == number),
                Assume(writer.data.payload.data == 0),
            ]
        self.takes(m, port.request)
        self.takes(m, port.data)
        self.offers(m, port.response)

        due = Signal(range(BURSTS + 1))  # responses
        room = due != BURSTS
        ends, of_b = self._together(m, a, b, port, room)
        m.d.sync += due.eq(due + ends - taken(port.response))
        m.d.comb += Assume(~port.response.valid | (due != 0))
        self._in_turn(m, a, b)
        self._respond(m, a, b, port, due, ends, of_b)

    def _together(self, m: Module, a: Any, b: Any, port: Any, room: Value) -> tuple[Signal, Signal]:
        """Claim that a burst has one writer, begins while there is ``room``, and goes on.

        Return whether a burst is complete in this cycle, and whether it is that of ``b``.
        """
        for passed, ours, theirs in (
            (port.request, a.request, b.request),
            (port.data, a.data, b.data),
        ):
            m.d.comb += Assert(taken(ours) + taken(theirs) == taken(passed))
            for offer in (ours, theirs):
                with m.If(taken(offer)):
                    m.d.comb += Assert(passed.payload == offer.payload)
        asked, sent, begun, was_b = (Signal() for _ in range(4))
        asks, sends, last, ends, of_b = (Signal() for _ in range(5))
        idles = room & ~begun & (a.request.valid | b.request.valid) & ~port.request.valid
        m.d.comb += [
            asks.eq(taken(port.request)),
            sends.eq(taken(port.data)),
            last.eq(sends & port.data.payload.last),
            ends.eq((asked | asks) & (sent | last)),
            of_b.eq(Mux(begun, was_b, taken(b.request) | taken(b.data))),
            Assert(~asks | (~asked & (taken(b.request) == of_b))),
            Assert(~sends | (~sent & (taken(b.data) == of_b))),
            Assert(room | ~(begun | port.request.valid | port.data.valid)),
            Assert(~begun | asked | port.request.valid),
            Assert(~asked | sent | (port.data.valid == Mux(was_b, b.data.valid, a.data.valid))),
            Assert(~before(m, idles) | port.request.valid),
        ]
        m.d.sync += [
            asked.eq((asked | asks) & ~ends),
            sent.eq((sent | last) & ~ends),
            begun.eq((begun | asks | sends) & ~ends),
            was_b.eq(of_b),
        ]
        return ends, of_b

    def _in_turn(self, m: Module, a: Any, b: Any) -> None:
        """Claim that a writer whose request waits misses one burst at most."""
        for mine, other in ((a, b), (b, a)):
            owed = Signal()
            m.d.comb += Assert(~owed | ~taken(mine.request))
            with m.If(taken(mine.request) & other.request.valid):
                m.d.sync += owed.eq(1)
            with m.Elif(taken(other.request)):
                m.d.sync += owed.eq(0)

    def _respond(
        self, m: Module, a: Any, b: Any, port: Any, due: Signal, ends: Signal, of_b: Signal
    ) -> None:
        """Claim that a burst, tracked from its end, gets its response after all earlier bursts."""
        responds = taken(port.response)
        m.d.comb += Assert(taken(a.response) + taken(b.response) == responds)
        follows, is_b = Signal(), Signal()
        ahead = Signal.like(due)
        with m.If(ends & ~follows & self.anything(1, "follow_this")):
            m.d.sync += [follows.eq(1), is_b.eq(of_b), ahead.eq(due - responds)]
        with m.Elif(responds):
            m.d.sync += [ahead.eq(ahead - 1), follows.eq(follows & (ahead != 0))]
        with m.If(follows & (ahead == 0) & port.response.valid):
            ready = Mux(is_b, b.response.ready, a.response.ready)
            m.d.comb += [
                Assert(port.response.ready == ready),
                Assert(a.response.valid == ~is_b),
                Assert(b.response.valid == is_b),
                Assert(~is_b | (b.response.payload == port.response.payload)),
                Assert(is_b | (a.response.payload == port.response.payload)),
            ]


def test_writers_share_in_turn(proof: Proof) -> None:
    proof.holds(WritesInTurn(), Reached)


ARBITER = "ports.write_arbiter"
BUGS = {
    "the port changes within a burst": ("~(asked | requests)", "~requests"),
    "the port stays with a writer": (
        "other & (ends | ~(asked | requests))",
        "other & ~(asked | requests)",
    ),
    "a request is repeated": ("may_ask.eq(~asked & order.i.ready)", "may_ask.eq(order.i.ready)"),
    "beats of the next burst pass": (
        "(asked | requests) & ~sent & order",
        "(asked | requests) & order",
    ),
    "beats pass before their request": ("(asked | requests) & ~sent", "~sent"),
    "a burst ends with its beats": ("ends.eq(asks & sends)", "ends.eq(sends)"),
    "a burst ends with its request": ("ends.eq(asks & sends)", "ends.eq(asks)"),
    "a burst ends with any beat": (" & port.data.payload.last", ""),
    "too many bursts": ("may_ask.eq(~asked & order.i.ready)", "may_ask.eq(~asked)"),
    "beats of the other": ("Mux(of_b, b.data.payload, a.data.payload)", "a.data.payload"),
    "responses are not in order": (
        "order.ready.eq(self.port.response.valid & self.port.response.ready)",
        "order.ready.eq(1)",
    ),
    "a response is lost": ("order.valid & ready", "order.valid"),
    "the writer of a response is not known": ("order.i.payload.eq(of_b)", "order.i.payload.eq(0)"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    proof.finds(Bug(ARBITER, *BUGS[bug]), WritesInTurn(), within=14)
