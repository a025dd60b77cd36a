"""The Wishbone adapters keep the bus rules; every beat and access passes once, in order."""

from typing import Any

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value

from bitlane_rtl.bus import WishboneControl, WishboneManager
from support.formal.proof import Bounded, Claim, Contract, Reached, Reaching, before, proofs, taken

ADDRESS_WIDTH = 4
DATA_WIDTH = 8
IN_FLIGHT = 4

DEPTH = 8
"""Depth of the manager's proof in cycles; the covers show what it reaches."""

HELD = 8
"""Entries of a list, more than can be under way."""


class Ordered:
    """A list of values, the oldest first."""

    def __init__(self, m: Module, width: int, name: str) -> None:
        self._m = m
        self._values = Array(Signal(width, name=f"{name}_{index}") for index in range(HELD))
        self._first = Signal(range(HELD), name=f"{name}_first")
        self._end = Signal(range(HELD), name=f"{name}_end")
        self.count = Signal(range(HELD), name=f"{name}_count")
        self.oldest = Signal(width, name=f"{name}_oldest")
        m.d.comb += [
            self.count.eq(self._end - self._first),
            self.oldest.eq(self._values[self._first]),
        ]

    def add(self, now: Value, *parts: Value) -> None:
        """Add the value of ``parts`` in a cycle with ``now``; claim that there is room."""
        self._m.d.comb += Assert(~now | (self.count != HELD - 1))
        with self._m.If(now):
            self._m.d.sync += [self._values[self._end].eq(Cat(parts)), self._end.eq(self._end + 1)]

    def remove(self, now: Value) -> None:
        """Remove the oldest value in a cycle with ``now``, and one that is added then."""
        with self._m.If(now):
            self._m.d.sync += self._first.eq(self._first + 1)


class TransfersEveryBeatOnce(Contract):
    """Ports and memory do all that they may; the memory answers in order, at once or later.

    All data are the same but for their lowest bit, and bursts have 4 beats at most.
    """

    def claim(self, m: Module) -> None:
        m.submodules.manager = manager = WishboneManager(ADDRESS_WIDTH, DATA_WIDTH, IN_FLIGHT)
        read, write, bus = manager.read, manager.write, manager.bus
        for offered in (read.request, write.request, write.data):
            self.offers(m, offered)
        self.takes(m, read.data)
        self.takes(m, write.response)
        accepted, answered, due = self._bus(m, bus)
        last = Mux(
            bus.we,
            self._burst(m, write.request, bus, accepted & bus.we, "written"),
            self._burst(m, read.request, bus, accepted & ~bus.we, "read"),
        )
        self._beats(m, write, bus, accepted & bus.we)
        self._answers(m, manager, Mux(due.count == 0, Cat(bus.we, last), due.oldest), answered)
        due.add(accepted, bus.we, last)
        due.remove(answered)

    def _bus(self, m: Module, bus: Any) -> tuple[Signal, Signal, Ordered]:
        """Claim the rules of the bus.

        Return whether a request is accepted, whether one is answered, and an empty list for all
        that are due.
        """
        for name in ("stall", "ack", "err", "dat_r"):
            m.d.comb += getattr(bus, name).eq(self.anything(len(getattr(bus, name)), name))
        accepted, answered, turns = Signal(), Signal(), Signal(2)
        due = Ordered(m, 2, "due")
        request = Cat(bus.stb, bus.we, bus.adr, bus.sel, bus.dat_w)
        held, offered = before(m, bus.stb & bus.stall), before(m, request)
        strobed, wrote = before(m, bus.stb), before(m, bus.we)
        m.d.comb += [
            accepted.eq(bus.stb & ~bus.stall),
            answered.eq(bus.ack | bus.err),
            Assume(bus.dat_r[1:] == 0),
            Assume(~(bus.ack & bus.err)),
            Assume(~answered | (due.count != 0) | accepted),
            Assert(bus.cyc == (bus.stb | (due.count != 0))),
            Assert(due.count + bus.stb <= IN_FLIGHT),
            Assert(~held | (request == offered)),
            Assert((due.count == 0) | (bus.we == wrote)),
            Assert(~(bus.stb & strobed) | (bus.we == wrote)),
            Assert(~bus.stb | bus.we | bus.sel.all()),
            Cover(due.count == IN_FLIGHT),
            Cover(turns == 1),
        ]
        m.d.sync += turns.eq(turns + ((due.count == 0) & accepted & (bus.we != wrote)))
        return accepted, answered, due

    def _burst(self, m: Module, request: Any, bus: Any, accepted: Value, name: str) -> Value:
        """Claim that the bus has the beats of each burst in order, and none else.

        Return whether the beat on the bus is the last one of its burst.
        """
        address, length = request.payload.address, request.payload.length
        m.d.comb += [Assume(address + length < 1 << ADDRESS_WIDTH), Assume(length < 4)]
        bursts = Ordered(m, len(address) + len(length), name)
        bursts.add(request.valid & ~before(m, request.valid & ~request.ready), address, length)
        position = Signal.like(length, name=f"{name}_position")
        last = Signal(name=f"{name}_last")
        m.d.comb += last.eq(position == bursts.oldest[len(address) :])
        with m.If(accepted):
            m.d.sync += position.eq(Mux(last, 0, position + 1))
            m.d.comb += [
                Assert(bursts.count != 0),
                Assert(bus.adr == bursts.oldest[: len(address)] + position),
            ]
        bursts.remove(accepted & last)
        m.d.comb += Cover(accepted & last & (position == 2))
        return last

    def _beats(self, m: Module, write: Any, bus: Any, accepted: Value) -> None:
        """Claim that the bus has the beats that the writer sent."""
        beat, request = write.data.payload, write.request
        m.d.comb += Assume(beat.data[1:] == 0)
        position = Signal.like(request.payload.length)
        with m.If(taken(write.data)):
            m.d.sync += position.eq(Mux(beat.last, 0, position + 1))
        with m.If(write.data.valid & request.valid):
            m.d.comb += Assume(beat.last == (position == request.payload.length))
        sent = Ordered(m, DATA_WIDTH + 1, "sent")
        sent.add(taken(write.data), beat.data, beat.strobe)
        sent.remove(accepted)
        with m.If(accepted):
            m.d.comb += [Assert(sent.count != 0), Assert(sent.oldest == Cat(bus.dat_w, bus.sel))]

    def _answers(self, m: Module, manager: Any, kind: Value, answered: Value) -> None:
        """Claim that each answer, of ``kind`` write and last, is at its port a cycle later."""
        bus, data, response = manager.bus, manager.read.data, manager.write.response
        given = Ordered(m, 3 + DATA_WIDTH, "given")
        given.add(answered, kind, bus.err, bus.dat_r)
        wrote, last, error = given.oldest[0], given.oldest[1], given.oldest[2]
        there, failed = given.count != 0, Signal()
        m.d.comb += [
            Assert(data.valid == (there & ~wrote)),
            Assert(response.valid == (there & wrote & last)),
            Cover(response.valid & failed & ~error),
        ]
        with m.If(data.valid):
            m.d.comb += [
                Assert(data.payload.last == last),
                Assert(data.payload.error == error),
                Assert(data.payload.data == given.oldest[3:]),
            ]
        with m.If(response.valid):
            m.d.comb += Assert(response.payload == (error | failed))
        passes = there & wrote & ~last
        with m.If(passes):
            m.d.sync += failed.eq(failed | error)
        with m.Elif(taken(response)):
            m.d.sync += failed.eq(0)
        given.remove(taken(data) | taken(response) | passes)


class AnswersEachAccessOnce(Contract):
    """A pipelined manager does all that it may, and gives up accesses by CYC."""

    def claim(self, m: Module) -> None:
        m.submodules.subordinate = subordinate = WishboneControl()
        bus, control = subordinate.bus, subordinate.control
        for name in ("cyc", "stb", "we", "adr", "sel", "dat_w"):
            m.d.comb += getattr(bus, name).eq(self.anything(len(getattr(bus, name)), name))
        m.d.comb += control.read_data.eq(self.anything(32, "read_data"))
        request = Cat(bus.we, bus.adr, bus.sel, bus.dat_w)
        waits, offered = before(m, bus.cyc & bus.stb & bus.stall), before(m, request)
        with m.If(waits & bus.cyc):
            m.d.comb += [Assume(bus.stb), Assume(request == offered)]

        accepted, answered, due = Signal(), Signal(), Signal()
        aligned = bus.adr[:2] == 0
        bad, wrote, word = Signal(), Signal(), Signal(32)
        m.d.comb += [
            accepted.eq(bus.cyc & bus.stb & ~bus.stall),
            answered.eq(bus.ack | bus.err),
            Assert(~(bus.ack & bus.err)),
            Assert(~answered | due),
            Assert(~(accepted & due)),
            Assert(control.write == (accepted & bus.we & aligned & bus.sel.all())),
            Assert(control.read == (accepted & ~bus.we & aligned)),
        ]
        with m.If(control.read | control.write):
            m.d.comb += [Assert(control.address == bus.adr)]
        with m.If(control.write):
            m.d.comb += Assert(control.write_data == bus.dat_w)
        m.d.sync += due.eq(accepted | (due & bus.cyc & ~answered))
        with m.If(accepted):
            m.d.sync += [
                bad.eq(~aligned | (bus.we & bus.sel.any() & ~bus.sel.all())),
                wrote.eq(bus.we),
            ]
        with m.If(before(m, control.read)):
            m.d.sync += word.eq(control.read_data)
        with m.If(answered):
            m.d.comb += [Assert(bus.err == bad), Assert(wrote | bad | (bus.dat_r == word))]
        self._in_time(m, bus, accepted, wrote)

    def _in_time(self, m: Module, bus: Any, accepted: Value, wrote: Value) -> None:
        """Claim the latency: each access is accepted in the cycles stated, and answered."""
        answered = bus.ack | bus.err
        once = before(m, accepted)
        twice = before(m, once & ~wrote & bus.cyc)
        m.d.comb += Assert(answered == ((once & wrote) | twice))
        waited = Signal(3)
        with m.If(bus.cyc & bus.stb & bus.stall):
            m.d.sync += waited.eq(waited + 1)
        with m.Else():
            m.d.sync += waited.eq(0)
        m.d.comb += Assert(waited <= 3)


OF_THE_MANAGER = {
    "more are in flight than answers have room": (
        "credit.room & accesses.i.ready",
        "accesses.i.ready",
    ),
    "the direction changes while answers are due": ("other & may_turn", "other & may_enter"),
    "CYC falls while answers are due": ("cyc.eq(order.o.valid)", "cyc.eq(accesses.o.valid)"),
    "STALL is ignored": ("accesses.o.ready.eq(~bus.stall)", "accesses.o.ready.eq(1)"),
    "a request changes while it is stalled": ("access.beat <<", "(access.beat ^ bus.stall) <<"),
    "a beat is requested again": ("Mux(last, 0, counted + 1)", "Mux(last, 0, counted)"),
    "ERR is not an answer": ("ready.eq(bus.ack | bus.err)", "ready.eq(bus.ack)"),
    "an error is lost": ("error.eq(bus.err)", "error.eq(bus.err & ~order.o.payload)"),
    "an error of an earlier beat is lost": (
        "fails = answer.error | failed",
        "fails = answer.error",
    ),
    "an error stays for the next burst": ("fails & ~answer.last", "fails"),
    "the last beat is not marked": ("order.i.payload.eq(last)", "order.i.payload.eq(0)"),
    "a read selects the bytes of a write": (" | ~turn.replicate(len(sent.strobe))", ""),
    "a write does not wait for its data": ("write.valid & self.write.data.valid", "write.valid"),
}
OF_THE_SUBORDINATE = {
    "an abandoned access is answered": ("(fetching & bus.cyc)", "fetching"),
    "an abandoned access is carried out": ("taken & requested\n", "taken\n"),
    "an access needs no CYC": ("requested = bus.cyc & bus.stb", "requested = bus.stb"),
    "part of a word is written": ("good.eq(aligned & (bus.sel == ALL_BYTES))", "good.eq(aligned)"),
    "an access is accepted twice": ("requested & ~taken & ~fetching", "requested & ~fetching"),
    "a bad access gets ACK, too": ("ack.eq(answering & ~error)", "ack.eq(answering)"),
    "a word comes a cycle early": ("with m.If(fetching):", "with m.If(taken):"),
}


test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(
        TransfersEveryBeatOnce,
        Bounded(DEPTH),
        Reaching(DEPTH),
        module="bus.wishbone",
        bugs=OF_THE_MANAGER,
        within=DEPTH,
    ),
    Claim(
        AnswersEachAccessOnce, Reached, module="bus.wishbone", bugs=OF_THE_SUBORDINATE, within=10
    ),
)
