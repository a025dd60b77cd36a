"""The loop nest issues each step once and in order; bursts cover their span, without gaps."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value, signed

from bitlane_rtl.abi import BEATS_PER_BLOCK
from bitlane_rtl.addresses import LoopNest, Splitter
from bitlane_rtl.command import STREAMS, StreamFlags
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.streams import SkidBuffer
from support.formal.proof import Claim, Contract, Induction, Reached, before, proofs, taken

CONFIGURATION = Configuration(loops=3, count_bits=2, length_bits=12)
MOST = 3
"""Maximum iterations of each loop; more would make a proof too long."""


class IssuesAll(Contract):
    """Commands of any kind follow each other; streams accept their steps at any time."""

    def claim(self, m: Module) -> None:
        m.submodules.nest = nest = LoopNest(CONFIGURATION, SkidBuffer)
        for name in STREAMS:
            self.takes(m, getattr(nest, name))
        start = self._command(m, nest)
        totals, strided = self._registered(m, nest, start)
        left = [self._follow(m, nest, start, name, totals, strided[name]) for name in STREAMS]
        m.d.comb += Assert(nest.walking | ~Cat(left).any())
        # The loop nest never pauses longer than a run has elements, so it issues every step.
        silent = nest.walking & ~Cat(getattr(nest, name).valid for name in STREAMS).any()
        cycles = Signal(range(MOST + 1))
        m.d.sync += cycles.eq(Mux(silent, cycles + 1, 0))
        m.d.comb += Assert(~silent | (cycles < MOST - 1))

    def _command(self, m: Module, nest: LoopNest) -> Value:
        """Drive the loop nest as its users must; return ``start``."""
        loops: Any = nest.loops
        start, plain = self.anything(1, "start"), self.anything(1, "plain")
        totals = [loops.run, *loops.counts]
        inputs = [*totals, nest.used, nest.strided, nest.in_use]
        for number, each in enumerate(inputs):
            # Totals are signed and have few values, which keeps the proof short.
            shape = signed(2) if number < len(totals) else len(Value.cast(each))
            m.d.comb += Value.cast(each).eq(self.anything(shape, f"input_{number}"))
        m.d.comb += [
            nest.start.eq(start),
            nest.plain.eq(plain),
            Assume(~start | ~nest.walking),
            Assume(nest.in_use < len(totals)),
            Assume(nest.used.as_value().any()),
        ]
        m.d.comb += [Assume(total.as_signed() != -2) for total in totals]
        # The loops stay constant while the loop nest walks.
        was = before(m, Cat(totals))
        m.d.comb += Assume(~nest.walking | (Cat(totals) == was))
        return start

    def _registered(self, m: Module, nest: LoopNest, start: Value) -> tuple[list[Signal], Any]:
        """Register a command's iterations, less one, and its strided streams; return both."""
        loops: Any = nest.loops
        totals = [Signal(range(MOST), name=f"total_{loop}") for loop in range(3)]
        strided: Any = Signal(StreamFlags())
        with m.If(start):
            m.d.sync += strided.as_value().eq(Mux(nest.plain, 0, nest.strided.as_value()))
            for loop, entered in enumerate([loops.run, *loops.counts]):
                is_used = ~nest.plain & (nest.in_use >= loop)
                m.d.sync += totals[loop].eq(Mux(is_used, entered.as_signed() + 1, 0))
        return totals, strided

    def _follow(
        self,
        m: Module,
        nest: LoopNest,
        start: Value,
        name: str,
        totals: list[Signal],
        strided: Value,
    ) -> Signal:
        """Claim the value of a stream's next step. Return whether a step is left."""
        steps = getattr(nest, name)
        left = Signal(name=f"left_{name}")
        done = [Signal(range(MOST), name=f"done_{name}_{loop}") for loop in range(3)]
        is_last = [each == total for each, total in zip(done, totals, strict=True)]
        last = ~strided | is_last[0]
        end = last & is_last[1] & is_last[2]
        advances = Mux(last, Mux(is_last[1], 2, 1), 0)
        m.d.comb += Assert(left | ~steps.valid)
        with m.If(steps.valid):
            m.d.comb += [
                Assert(steps.p.last == last),
                Assert(steps.p.end == end),
                Assert(end | (steps.p.advances == advances)),
            ]
        with m.If(start):
            m.d.sync += [left.eq(nest.used[name]), *(each.eq(0) for each in done)]
        with m.Elif(taken(steps)):
            m.d.sync += left.eq(~end)
            for loop, each in enumerate(done):
                with m.If(advances == loop):
                    m.d.sync += each.eq(each + 1)
                with m.Elif(advances > loop):
                    m.d.sync += each.eq(0)
        return left


BUGS = {
    "it does not walk loops": ("running.eq(self.start & ~self.plain)", "running.eq(0)"),
    "a full queue holds nothing up": ("ready &= buffer.i.ready", "pass"),
    "loops that are not in use are walked": (
        "unused = self.in_use < number if number",
        "unused = Const(0) if number",
    ),
    "a plain command has loops": ("running.eq(self.start & ~self.plain)", "running.eq(self.start)"),
    "a dense stream gets a step for each element": ("(done[0] | strided[name])", "1"),
    "a plain step goes to all streams": ("& self.plain & self.used[name]", "& self.plain"),
    "an outer loop goes on too soon": (
        "inside_done.eq(Cat(1, done).all())",
        "inside_done.eq(Cat(1, done[-1:]).all())",
    ),
    "a loop does not begin anew": ("Mux(left[-1], again, left - 1)", "left - 1"),
    "it stops walking too soon": ("waiting |= buffer.o.valid", "pass"),
}


CONFIGURATIONS = {
    "16-bit addresses": Configuration(
        data_width=32, address_width=16, memory_bytes=1 << 16, length_bits=12
    ),
    "as by default": Configuration(),
}


class SumsUp(Contract):
    """The bursts add up to the span, for spans of any length within the address space.

    ``helped`` adds the invariants of the splitter's registers that induction needs.
    """

    def __init__(self, circuit: str, *, gap: bool = False, helped: bool = False) -> None:
        super().__init__()
        self._configuration = configuration = CONFIGURATIONS[circuit]
        self._gap = gap
        self._helped = helped
        self._width = configuration.address_width
        self._beat = configuration.data_bytes
        self._block = configuration.data_bytes * BEATS_PER_BLOCK

    def claim(self, m: Module) -> None:
        beat, block = self._beat, self._block
        m.submodules.splitter = splitter = Splitter(self._configuration, 1, gap=self._gap)
        self.offers(m, splitter.i)
        self.takes(m, splitter.o)
        i, burst = splitter.i.p, splitter.o.p
        ends_at = i.address + i.extent
        m.d.comb += Assume(ends_at >> self._width == 0)

        # The rest of the accepted span: bytes from `following` to `last`.
        left, first = Signal(), Signal()
        span = Signal.like(i)
        following, last, end = (Signal(self._width) for _ in range(3))
        final = end // beat == last // beat
        m.d.comb += [
            end.eq(burst.address + beat * burst.length + (beat - 1)),
            last.eq(span.address + span.extent),
            Assert(splitter.o.valid == left),
            Assert(~(taken(splitter.i) & left & ~(taken(splitter.o) & final))),
        ]
        with m.If(taken(splitter.i)):
            m.d.sync += [
                left.eq(1),
                first.eq(1),
                span.eq(i),
                following.eq(i.address // beat * beat),
            ]
        with m.Elif(taken(splitter.o)):
            m.d.sync += [left.eq(~final), first.eq(0), following.eq(end + 1)]
        with m.If(left):
            m.d.comb += [
                Assert(burst.address == following),
                Assert(burst.address // block == end // block),
                Assert(end // beat <= last // beat),
                Assert(final | (end % block == block - 1)),
                Assert(burst.first == first),
                Assert(burst.final == final),
                Assert(burst.single == (burst.length == 0)),
                Assert(burst.begin == span.address % beat),
                Assert(burst.finish == last % beat),
                Assert(burst.tag == span.tag),
            ]
            if self._helped:
                self._help(m, span, following, last)

    def _help(self, m: Module, span: Any, following: Value, last: Value) -> None:
        """Claim the values of the splitter's registers, from which induction starts."""
        beat, block = self._beat, self._block
        width = self._configuration.length_bits + 1 - (block - 1).bit_length()
        index = following // block - span.address // block
        blocks = last // block - span.address // block
        skipped = Mux(blocks == 0, span.address % block // beat, 0)
        m.d.comb += [
            Assert((span.address + span.extent) >> self._width == 0),
            Assert(
                (span.address // beat <= following // beat) & (following // beat <= last // beat)
            ),
            Assert(self.inside(width, "splitter.index") == index[:width]),
            Assert(self.inside(width, "splitter.following") == (index + 1)[:width]),
            Assert(self.inside(width, "splitter.blocks") == blocks[:width]),
            Assert(self.inside(4, "splitter.rest") == (last % block // beat - skipped)[:4]),
        ]


OF_BURSTS = {
    "last beat is cut off": (
        "Mux(ends_here, beats, finish)",
        "Mux(ends_here, beats, self.i.p.extent)",
    ),
    "burst goes on into the next block": ("Mux(final, rest, ~start)", "Mux(final, rest, 15)"),
    "carry into the block is lost": ("~(long | in_block[-1])", "~long"),
    "one block too many": ("final.eq(following == blocks)", "final.eq(index == blocks)"),
    "single is late": ("self.o.p.single.eq(single)", "self.o.p.single.eq(rest == 0)"),
    "next span is taken too soon": ("self.o.ready & final", "self.o.ready"),
}

test_it_holds, test_a_planted_bug_is_found = proofs(
    Claim(IssuesAll, Reached, module="addresses.loop_nest", bugs=BUGS, within=10),
    *(
        Claim(SumsUp, Induction(2), circuit=circuit, gap=gap, helped=True)
        for circuit in CONFIGURATIONS
        for gap in (False, True)
    ),
    Claim(SumsUp, module="addresses.bursts", bugs=OF_BURSTS, within=10, circuit="16-bit addresses"),
)
