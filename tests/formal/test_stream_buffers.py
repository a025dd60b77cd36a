"""Stream buffers pass on each payload once, in order and unaltered, without a pause."""

from collections.abc import Callable

import pytest
from amaranth.hdl import Assert, Assume, Module, Signal

from bitlane_rtl.streams.buffer import StreamBuffer
from bitlane_rtl.streams.credit import Credit
from bitlane_rtl.streams.fifo import Fifo
from bitlane_rtl.streams.register_slices import (
    ForwardRegister,
    HalfRateRegister,
    PingPongBuffer,
    ReverseRegister,
    SkidBuffer,
)
from support.formal.contract import Contract, before, taken
from support.formal.proof import Bug, Proof
from support.formal.prover import Reached

pytestmark = pytest.mark.slow

WIDTH = 2
"""Bits of a payload: control ignores them, and two bits can reveal a swap."""

Build = Callable[[], StreamBuffer]


class KeepsOrder(Contract):
    """A payload, tracked from its entry, leaves unaltered after all payloads before it.

    ``holds`` is the capacity in payloads, ``delay`` the cycles from entry to a valid output.
    """

    def __init__(self, build: Build, holds: int, delay: int, *, credit: bool = False) -> None:
        super().__init__()
        self._build = build
        self._holds = holds
        self._delay = delay
        self._credit = credit

    def claim(self, m: Module) -> None:
        m.submodules.buffer = buffer = self._build()
        self.offers(m, buffer.i)
        self.takes(m, buffer.o)
        enters, leaves = taken(buffer.i), taken(buffer.o)

        held = Signal(range(self._holds + 1))
        m.d.sync += held.eq(held + enters - leaves)
        if self._credit:
            m.d.comb += [Assume(~enters | (held != self._holds)), Assert(buffer.i.ready)]
        else:
            goes_on = buffer.o.ready if isinstance(buffer, ForwardRegister) else 0
            m.d.comb += Assert(buffer.i.ready == ((held != self._holds) | goes_on))
        if isinstance(buffer, Fifo):
            m.d.comb += Assert(buffer.level == (0 if self._credit else held))

        # A payload leaves only after it entered, and becomes valid at the output in time.
        passing = buffer.i.valid & buffer.i.ready if self._delay == 0 else 0
        waits = (held != 0) & ~buffer.o.valid
        m.d.comb += Assert((held != 0) | passing | ~buffer.o.valid)
        m.d.comb += Assert(~waits if self._delay < 2 else ~(waits & before(m, waits)))

        self._follow(m, buffer, held)

    def _follow(self, m: Module, buffer: StreamBuffer, held: Signal) -> None:
        follows, ahead, value = Signal(), Signal.like(held), Signal(WIDTH)
        starts = taken(buffer.i) & ~follows & self.anything(1, "follow_this")
        through = buffer.o.valid & (held == 0)
        with m.If(starts):
            m.d.sync += [
                follows.eq(~(through & buffer.o.ready)),
                ahead.eq(held - (taken(buffer.o) & ~through)),
                value.eq(buffer.i.payload),
            ]
        with m.Elif(taken(buffer.o)):
            m.d.sync += [follows.eq(follows & (ahead != 0)), ahead.eq(ahead - 1)]
        with m.If(starts & through):
            m.d.comb += Assert(buffer.o.payload == buffer.i.payload)
        with m.If(follows & (ahead == 0) & buffer.o.valid):
            m.d.comb += Assert(buffer.o.payload == value)


BUFFERS: dict[str, tuple[Build, int, int]] = {
    "forward register": (lambda: ForwardRegister(WIDTH), 1, 1),
    "skid buffer": (lambda: SkidBuffer(WIDTH), 2, 1),
    "ping-pong buffer": (lambda: PingPongBuffer(WIDTH), 2, 1),
    "half-rate register": (lambda: HalfRateRegister(WIDTH), 1, 1),
    "reverse register": (lambda: ReverseRegister(WIDTH), 1, 0),
    "FIFO 2": (lambda: Fifo(WIDTH, 2), 2, 1),
    "FIFO 4": (lambda: Fifo(WIDTH, 4), 4, 1),
    "FIFO 8": (lambda: Fifo(WIDTH, 8), 8, 1),
    "FIFO 4, registered": (lambda: Fifo(WIDTH, 4, registered=True), 4, 2),
    "FIFO 8, registered": (lambda: Fifo(WIDTH, 8, registered=True), 8, 2),
    "FIFO 4, block RAM": (lambda: Fifo(WIDTH, 4, block_ram=True), 4, 2),
}
CREDIT: dict[str, tuple[Build, int, int]] = {
    "FIFO 4": (lambda: Fifo(WIDTH, 4, credit=True), 4, 1),
    "FIFO 8": (lambda: Fifo(WIDTH, 8, credit=True), 8, 1),
    "FIFO 4, registered": (lambda: Fifo(WIDTH, 4, credit=True, registered=True), 4, 2),
    "FIFO 4, block RAM": (lambda: Fifo(WIDTH, 4, credit=True, block_ram=True), 4, 2),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_a_buffer_keeps_its_order(name: str, proof: Proof) -> None:
    proof.holds(KeepsOrder(*BUFFERS[name]), Reached)


@pytest.mark.parametrize("name", CREDIT)
def test_a_fifo_with_credit_keeps_its_order(name: str, proof: Proof) -> None:
    proof.holds(KeepsOrder(*CREDIT[name], credit=True), Reached)


FIFO, SLICES, CREDITS = "streams.fifo", "streams.register_slices", "streams.credit"
BUGS = {
    "a forward register does not wait": (
        "forward register",
        "self.i.ready.eq(~full | self.o.ready),",
        "self.i.ready.eq(1),",
    ),
    "a skid buffer loses its spare": (
        "skid buffer",
        "Mux(spare_full, spare, entering)",
        "entering",
    ),
    "a skid buffer forgets that it is full": (
        "skid buffer",
        "waits & (spare_full | buffer.i.valid)",
        "waits & buffer.i.valid",
    ),
    "a ping-pong buffer takes no turns": (
        "ping-pong buffer",
        "turn.eq(turn ^ self.o.ready)",
        "turn.eq(turn)",
    ),
    "a ping-pong buffer overwrites the entry at its output": (
        "ping-pong buffer",
        "~Mux(turn == number, front_full, spare_full)",
        "~Mux(turn == number, spare_full, front_full)",
    ),
    "a half-rate register takes too soon": (
        "half-rate register",
        "[self.i.ready.eq(~full), ",
        "[self.i.ready.eq(~full | self.o.ready), ",
    ),
    "a reverse register drops what waits": (
        "reverse register",
        "full.eq(self.o.valid & ~self.o.ready)",
        "full.eq(self.i.valid & ~self.o.ready)",
    ),
    "a reverse register alters what waits": (
        "reverse register",
        "leaving.eq(Mux(full, spare, entering)),",
        "leaving.eq(spare | entering),",
    ),
    "a FIFO takes too many": ("FIFO 4", "else ~self.level[-1]", "else 1"),
    "a FIFO stops at two": ("FIFO 8", "else self.level != 1", "else self.level > 2"),
    "a FIFO counts wrong when both sides move": (
        "FIFO 4",
        "step(m, self.level, enter, leave)",
        "step(m, self.level, enter & ~leave, leave)",
    ),
    "a FIFO gives twice": ("FIFO 4, registered", "(self.level[0] & ~valid)", "self.level[0]"),
    "block RAM falls behind": (
        "FIFO 4, block RAM",
        "with m.If(more & (~valid | self.o.ready)):",
        "with m.If(more & ~valid):",
    ),
}
CREDIT_BUGS = {
    "a FIFO looks where it reads": (
        "FIFO 8",
        "following != write.addr if",
        "read.addr != write.addr if",
    ),
    "a FIFO gives what it has not": (
        "FIFO 4, registered",
        "read.addr != write.addr if self._credit",
        "1 if self._credit",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    name, *texts = BUGS[bug]
    module = FIFO if name.startswith("FIFO") else SLICES
    proof.finds(Bug(module, *texts), KeepsOrder(*BUFFERS[name]), within=12)


@pytest.mark.parametrize("bug", CREDIT_BUGS)
def test_a_bug_planted_in_a_fifo_with_credit_is_found(bug: str, proof: Proof) -> None:
    name, *texts = CREDIT_BUGS[bug]
    proof.finds(Bug(FIFO, *texts), KeepsOrder(*CREDIT[name], credit=True), within=12)


class KeepsRoom(Contract):
    """A payload sets out only with a credit, and reaches a FIFO of depth 4 ``way`` cycles later.

    The FIFO may pass a payload on as soon as it arrives, or hold it for any time.
    """

    def __init__(self, way: int) -> None:
        super().__init__()
        self._way = way

    def claim(self, m: Module) -> None:
        depth = 4
        m.submodules.credit = credit = Credit(depth)
        takes = credit.room & self.anything(1, "sets_out")
        arrives = takes
        for _ in range(self._way):
            arrives = before(m, arrives)
        # `KeepsOrder` assumes this of the sender to a FIFO with credit.
        held, under_way = Signal(range(depth + 1)), Signal(range(depth + 1))
        leaves = (held != 0) & self.anything(1, "leaves")
        back = before(m, leaves)
        m.d.sync += [held.eq(held + arrives - leaves), under_way.eq(under_way + takes - back)]
        m.d.comb += [
            credit.taken.eq(takes),
            credit.returned.eq(leaves),
            Assert(~arrives | (held != depth)),
            # No credit is withheld: it is free again a cycle after its payload left.
            Assert(credit.room == (under_way != depth)),
        ]


@pytest.mark.parametrize("way", range(4))
def test_credits_keep_room_for_what_is_under_way(way: int, proof: Proof) -> None:
    proof.holds(KeepsRoom(way), Reached)


COUNT_BUGS = {
    "a credit more than there is": ("~in_flight[-1])", "1)"),
    "a credit is lost": ("self.taken, returned)", "self.taken & ~returned, returned)"),
    "a credit is back too soon": (
        "m.d.sync += returned.eq(self.returned)",
        "m.d.comb += returned.eq(self.returned)",
    ),
}


@pytest.mark.parametrize("bug", COUNT_BUGS)
def test_a_bug_planted_in_the_credits_is_found(bug: str, proof: Proof) -> None:
    proof.finds(Bug(CREDITS, *COUNT_BUGS[bug]), KeepsRoom(1), within=12)
