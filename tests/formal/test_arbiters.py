"""Two readers or writers share a port in turn; beats and responses reach their own."""

from typing import Any

from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from bitlane_rtl.ports import ReadArbiter, WriteArbiter
from support.formal.proof import Claim, Contract, Reached, before, proofs, taken

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


BUGS = {
    "grants change": ("prefer_second.eq(choice ^ taken)", "prefer_second.eq(~choice)"),
    "first goes first": ("second & (prefer_second | ~first)", "second & ~first"),
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
OF_BLOCK_RAM = {
    "order is not awaited": ("port.data.valid & order.o.valid & ~to_b", "port.data.valid & ~to_b"),
}


WRITE_WIDTH = 8
WRITES = 2


class WritesInTurn(Contract):
    """A burst is complete before the next begins; requests, beats and responses pass unaltered.

    Writers may offer beats before the request of their burst, and the memory may accept them before
    it. The memory responds at any time after its burst is complete. The address of a request is the
    number of its writer. All beats are the same but for ``strobe`` and ``last``.
    """

    def claim(self, m: Module) -> None:
        m.submodules.arbiter = arbiter = WriteArbiter(ADDRESS_WIDTH, WRITE_WIDTH, WRITES)
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

        due = Signal(range(WRITES + 1))  # responses
        room = due != WRITES
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


OF_WRITERS = {
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

test_it_holds, test_a_planted_bug_is_found = proofs(
    *(
        Claim(
            SharesInTurn,
            Reached,
            module="ports.read_arbiter",
            bugs=bugs,
            within=14,
            block_ram=bugs is OF_BLOCK_RAM,
        )
        for bugs in (BUGS, OF_BLOCK_RAM)
    ),
    Claim(WritesInTurn, Reached, module="ports.write_arbiter", bugs=OF_WRITERS, within=14),
)
