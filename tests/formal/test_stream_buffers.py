"""Stream buffers pass on each payload once, in order and unaltered, without a pause."""

from collections.abc import Callable

from amaranth.hdl import Assert, Assume, Module, Mux, Signal

from bitlane_rtl.streams import (
    Credit,
    Fifo,
    ForwardRegister,
    HalfRateRegister,
    PingPongBuffer,
    ReverseRegister,
    SkidBuffer,
    StreamBuffer,
    TwoWriteFifo,
)
from support.formal.proof import Claim, Contract, Reached, before, proofs, taken

WIDTH = 2
"""Bits of a payload: control ignores them, and two bits can reveal a swap."""

Build = Callable[[], StreamBuffer]


class KeepsOrder(Contract):
    """A payload, tracked from its entry, leaves unaltered after all payloads before it.

    A FIFO with credit is never offered a payload that has no room.
    """

    def __init__(self, buffer: str) -> None:
        super().__init__()
        self._build, self._holds, self._delay = BUFFERS[buffer]
        self._credit = buffer.endswith("credit")

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
    # Constructor, capacity in payloads, cycles from entry to a valid output.
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
    "FIFO 4, credit": (lambda: Fifo(WIDTH, 4, credit=True), 4, 1),
    "FIFO 8, credit": (lambda: Fifo(WIDTH, 8, credit=True), 8, 1),
    "FIFO 4, registered, credit": (lambda: Fifo(WIDTH, 4, credit=True, registered=True), 4, 2),
    "FIFO 4, block RAM, credit": (lambda: Fifo(WIDTH, 4, credit=True, block_ram=True), 4, 2),
}

BUGS: dict[str, dict[str, tuple[str, str]]] = {
    "forward register": {
        "it does not wait": ("self.i.ready.eq(~full | self.o.ready),", "self.i.ready.eq(1),")
    },
    "skid buffer": {
        "it loses its spare": ("Mux(spare_full, spare, entering)", "entering"),
        "it forgets that it is full": (
            "waits & (spare_full | buffer.i.valid)",
            "waits & buffer.i.valid",
        ),
    },
    "ping-pong buffer": {
        "it takes no turns": ("turn.eq(turn ^ self.o.ready)", "turn.eq(turn)"),
        "it overwrites the entry at its output": (
            "~Mux(turn == number, front_full, spare_full)",
            "~Mux(turn == number, spare_full, front_full)",
        ),
    },
    "half-rate register": {
        "it takes too soon": (
            "[self.i.ready.eq(~full), ",
            "[self.i.ready.eq(~full | self.o.ready), ",
        ),
    },
    "reverse register": {
        "it drops what waits": (
            "full.eq(self.o.valid & ~self.o.ready)",
            "full.eq(self.i.valid & ~self.o.ready)",
        ),
        "it alters what waits": (
            "leaving.eq(Mux(full, spare, entering)),",
            "leaving.eq(spare | entering),",
        ),
    },
    "FIFO 4": {
        "it takes too many": ("else ~self.level[-1]", "else 1"),
        "it counts wrong when both sides move": (
            "step(m, self.level, enter, leave)",
            "step(m, self.level, enter & ~leave, leave)",
        ),
    },
    "FIFO 8": {"it stops at two": ("else self.level != 1", "else self.level > 2")},
    "FIFO 4, registered": {"it gives twice": ("(self.level[0] & ~valid)", "self.level[0]")},
    "FIFO 4, block RAM": {
        "it falls behind": (
            "with m.If(more & (~valid | self.o.ready)):",
            "with m.If(more & ~valid):",
        ),
    },
    "FIFO 8, credit": {
        "it looks where it reads": ("following != write.addr if", "read.addr != write.addr if")
    },
    "FIFO 4, registered, credit": {
        "it gives what it has not": (
            "read.addr != write.addr if self._credit",
            "1 if self._credit",
        ),
    },
}


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


COUNT_BUGS = {
    "a credit more than there is": ("~in_flight[-1])", "1)"),
    "a credit is lost": ("self.taken, returned)", "self.taken & ~returned, returned)"),
    "a credit is back too soon": (
        "m.d.sync += returned.eq(self.returned)",
        "m.d.comb += returned.eq(self.returned)",
    ),
}


DEPTH = 8


class KeepsOrderOfTwo(Contract):
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


OF_TWO = {
    "only one side is emptied": ("turn.eq(turn ^ taken)", "turn.eq(0)"),
    "both sides are emptied": ("front.i.ready & (turn == number)", "front.i.ready"),
    "the other side's payload": ("Mux(turn, second.o.payload, first.o.payload)", "first.o.payload"),
}

test_it_holds, test_a_planted_bug_is_found = proofs(
    *(
        Claim(
            KeepsOrder,
            Reached,
            module="streams.fifo" if name.startswith("FIFO") else "streams.register_slices",
            bugs=BUGS.get(name),
            within=12,
            buffer=name,
        )
        for name in BUFFERS
    ),
    *(
        Claim(
            KeepsRoom,
            Reached,
            module="streams.credit",
            bugs=COUNT_BUGS if way == 1 else None,
            within=12,
            way=way,
        )
        for way in range(4)
    ),
    Claim(KeepsOrderOfTwo, Reached, module="streams.two_write_fifo", bugs=OF_TWO, within=12),
)
