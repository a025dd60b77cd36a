"""A small core obeys AXI4 and stays within its memory, whatever ring, memory and host do."""

from typing import Any

from amaranth.hdl import Array, Assert, Assume, Cover, Module, Mux, Signal, Value

from bitlane_rtl.abi import BEATS_PER_BLOCK, Mode, Op
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.core import Core
from support.formal.proof import Bounded, Claim, Contract, Reaching, before, proofs, taken
from support.rtl.streams import channel

CONFIGURATION = Configuration(
    data_width=32,
    address_width=16,
    memory_base=0x4000,
    memory_bytes=0x4000,
    ops=frozenset({Op.NOT}),
    lanes=frozenset(),
    modes=frozenset({Mode.DENSE}),
    loops=1,
    read_ports=1,
    length_bits=12,
    count_bits=1,
    slots=2,
    fifo_beats=32,
    bursts=2,
    counters=False,
)
BEAT = CONFIGURATION.data_bytes
BLOCK = BEAT * BEATS_PER_BLOCK
OPEN = 4
"""Maximum number of open bursts in each direction."""

INDEX = range(8)

DEPTH = 25
"""Depth of the proof in cycles; the core can request its first burst in the 12th."""


class KeepsTheBusRules(Contract):
    """The ring starts with any words; host and memory do anything that their protocols allow.

    All bursts also stay within the memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.starts_as_anything("core.engine.ring.storage")

    def claim(self, m: Module) -> None:
        m.submodules.core = core = Core(CONFIGURATION)
        self._host(m, core.s_axil)
        opened = self._reads(m, core.m_axi), self._writes(m, core.m_axi)
        self._drains(m, core.m_axi, opened)

    def _drains(self, m: Module, bus: Any, opened: tuple[Value, Value]) -> None:
        """Claim that a core with ``drained`` has no open burst, and that it opens none.

        Until ``stop`` has been high for a cycle, ``drained`` misses a read of the cycle before.
        """
        drained = self.inside(1, "core.engine.data_path.drained")
        stop = self.inside(1, "core.engine.stop")
        stopped = stop & before(m, stop)
        reads, writes = opened
        asked = before(m, bus.arvalid & bus.arready)
        with m.If(drained):
            m.d.comb += [Assert(writes == 0), Assert(reads == (asked & ~stopped))]
        m.d.comb += Cover(drained & stopped & (before(m, writes) != 0))
        with m.If(drained & stopped):
            m.d.comb += Assert(~(bus.arvalid | bus.awvalid | bus.wvalid))

    def _host(self, m: Module, bus: Any) -> None:
        for name, fields in (("aw", ["addr"]), ("w", ["data", "strb"]), ("ar", ["addr"])):
            self.offers(m, channel(bus, name, *fields))
        for name, fields in (("b", ["resp"]), ("r", ["data", "resp"])):
            self.takes(m, channel(bus, name, *fields))

    def _burst(self, m: Module, bus: Any, name: str) -> Any:
        """Claim that the bursts of an address channel are legal; return the channel."""
        fields = ("addr", "len", "size", "burst")
        address, length, size, kind = (getattr(bus, name + field) for field in fields)
        burst = channel(bus, name, *fields)
        self.takes(m, burst)
        last = address + length * BEAT
        with m.If(burst.valid):
            m.d.comb += [
                Assert(address % BEAT == 0),
                Assert(address // BLOCK == last // BLOCK),
                Assert(size == (BEAT - 1).bit_length()),
                Assert(kind == 1),
                Assert(address >= CONFIGURATION.memory_base),
                Assert(last <= CONFIGURATION.memory_last),
            ]
        return burst

    def _reads(self, m: Module, bus: Any) -> Value:
        """Model a memory that answers read bursts in order. Return the number of open bursts."""
        ar, r = self._burst(m, bus, "ar"), channel(bus, "r", "data", "resp", "last")
        self.offers(m, r)
        lengths = Array(Signal(8, name=f"length_{index}") for index in range(OPEN))
        asked, answered = Signal(INDEX), Signal(INDEX)
        beat = Signal(8)
        opened = Signal(INDEX)
        m.d.comb += [
            opened.eq(asked - answered),
            Assume(~ar.ready | (opened < OPEN)),
            Assume(~r.valid | (opened != 0)),
            Assume(bus.rlast == (beat == lengths[answered[:2]])),
        ]
        with m.If(taken(ar)):
            m.d.sync += [lengths[asked[:2]].eq(bus.arlen), asked.eq(asked + 1)]
        with m.If(taken(r)):
            m.d.sync += [beat.eq(Mux(bus.rlast, 0, beat + 1)), answered.eq(answered + bus.rlast)]
        return opened

    def _writes(self, m: Module, bus: Any) -> Value:
        """Model a memory that responds to a write burst after its address and data.

        Return the number of open bursts.
        """
        aw = self._burst(m, bus, "aw")
        w, b = channel(bus, "w", "data", "strb", "last"), channel(bus, "b", "resp")
        self.takes(m, w)
        self.offers(m, b)
        asked, sent, answered = Signal(INDEX), Signal(INDEX), Signal(INDEX)
        opened = Signal(INDEX)
        m.d.comb += [
            opened.eq(asked - answered),
            Assume(~aw.ready | (opened < OPEN)),
            Assume(~b.valid | ((asked != answered) & (sent != answered))),
            # Write data is valid only with a valid address, or while an accepted burst lacks beats.
            Assert(~w.valid | aw.valid | (sent != asked)),
        ]
        m.d.sync += [
            asked.eq(asked + taken(aw)),
            sent.eq(sent + (taken(w) & bus.wlast)),
            answered.eq(answered + taken(b)),
        ]

        # Any one burst has as many beats as its length announces.
        follow = self.something(m, INDEX, "follow")
        length, beats = Signal(8), Signal(9)
        announced, complete = Signal(), Signal()
        with m.If(taken(aw) & (asked == follow) & ~announced):
            m.d.sync += [length.eq(bus.awlen), announced.eq(1)]
        with m.If(taken(w) & (sent == follow) & ~complete):
            m.d.sync += [beats.eq(beats + 1), complete.eq(bus.wlast)]
        with m.If(announced):
            m.d.comb += Assert(Mux(complete, beats == length + 1, beats <= length))
        # These covers show how far DEPTH reaches: two answered bursts, one of several beats.
        several = announced & complete & (beats > 2)
        m.d.comb += [Cover(answered == 2), Cover(several & (follow == 1) & (answered == 2))]
        return opened


BUGS = {
    "bursts cross their block": (
        "addresses.bursts",
        "Mux(final, rest, ~start)",
        "Mux(final, rest, 15)",
    ),
    "bursts leave the memory": (
        "addresses.bursts",
        "return block[same:] != first >> same",
        "return block[same:] != block[same:]",
    ),
    "last beat is not marked": ("bus.axi4", "beat.payload.last),", "beat.payload.last & 0),"),
    "beats are marked by what they hold": (
        "bus.axi4",
        "axi.wlast.eq(beat.payload.last)",
        "axi.wlast.eq(beat.payload.last | (beat.payload.data == 0))",
    ),
    "clear does not wait": ("control.retirement", "self.clear & self.drained &", "self.clear &"),
    "a burst is taken back when one is answered": (
        "bus.axi4",
        "axi.awvalid.eq(request.valid)",
        "axi.awvalid.eq(request.valid & ~axi.bvalid)",
    ),
}


test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(KeepsTheBusRules, Bounded(DEPTH), Reaching(DEPTH), bugs=BUGS, within=DEPTH),
)
