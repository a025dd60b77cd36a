"""Units of the data path keep the stream contract; realigner, lane tests and row sums are exact."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from bitlane_rtl.abi import BIT_OPS, Lane, Op
from bitlane_rtl.bit_unit import BitUnit, LaneTests, RowSum
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.datapath import Realigner, Repack
from bitlane_rtl.streams import ForwardRegister, Wire
from support.formal.proof import Claim, Contract, Induction, Reached, before, proofs, taken

STAGES: dict[str, tuple[Any, int]] = {"wire": (Wire, 0), "register": (ForwardRegister, 1)}


class GivesEachBeat(Contract):
    """Words of any kind enter; the output beats have no back-pressure."""

    def __init__(self, stage: str, *, dual: bool = False) -> None:
        super().__init__()
        self._stage, self._latency = STAGES[stage]
        self._dual = dual

    def claim(self, m: Module) -> None:
        config, dual = Configuration(data_width=32), self._dual
        m.submodules.realigner = realigner = Realigner(config, self._stage, dual=dual)
        self.offers(m, realigner.i)
        word, placement = realigner.i.p, realigner.i.p.placement
        takes = taken(realigner.i)
        flushed = before(m, takes & placement.flush)
        m.d.comb += Assert(realigner.i.ready == (dual | ~flushed | placement.prime))

        # A word's own beat is due at once, its flush a cycle later, both plus the stage's latency.
        own, flush = takes & ~placement.prime, flushed
        ends = {
            "last": placement.last,
            "end": placement.end,
            "slot": placement.slot,
            "final": placement.final,
        }
        spoiled = Signal()
        error = spoiled | word.error
        with m.If(takes):
            m.d.sync += spoiled.eq(error)
        own_says = {**ends, "error": error}
        for name in ("last", "end"):
            own_says[name] = ends[name] & ~placement.flush
        flush_says = {name: before(m, value) for name, value in {**ends, "error": error}.items()}
        repeat = placement.repeat
        if self._latency:
            own, flush, repeat = before(m, own), before(m, flush), before(m, repeat)
            own_says = {name: before(m, value) for name, value in own_says.items()}
            flush_says = {name: before(m, value) for name, value in flush_says.items()}
        turn = Signal()
        if dual:
            m.d.sync += turn.eq(turn ^ own ^ flush)
        else:
            m.d.comb += Assert(~(own & flush))
        for number, o in enumerate(realigner.o):
            due = turn == number
            m.d.comb += Assert(o.valid == Mux(due, own | flush, own & flush))
            with m.If(o.valid):
                for name in ends | {"error": error}:
                    said = Mux(flush & due, flush_says[name], own_says[name])
                    m.d.comb += Assert(o.p.edge[name] == said)
                m.d.comb += Assert(o.p.repeat == (repeat & ~(flush & due)))


BUGS = {
    "no word waits": ("ready.eq(~flushes | self.i.p.placement.prime)", "ready.eq(1)"),
    "a word that waits counts as taken": (
        "flushes.eq(moved.i.valid & ",
        "flushes.eq(self.i.valid & ",
    ),
    "a flush has the error of the next word": (
        "spoiled | (word.error & ~flush)",
        "spoiled | word.error",
    ),
    "an error is forgotten": ("spoiled.eq(spoiled | word.error)", "spoiled.eq(0)"),
    "a run ends twice": ("placement.last & ~placement.flush", "placement.last"),
    "a prime gives a beat": ("joins = valid & ~placement.prime", "joins = valid"),
}
DUAL_BUGS = {
    "beats do not take turns": ("turn.eq(turn ^ flushing ^ joins)", "turn.eq(0)"),
    "a beat is lost": ("flushing & joins)", "0)"),
    "the later beat goes first": ("beat(flushing & first, ", "beat(flushing & ~first, "),
}


WIDTH = 32
DEPTH = 6


class KeepsOffers(Contract):
    """The input is offered anything."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._build = UNITS[unit]

    def claim(self, m: Module) -> None:
        m.submodules.unit = unit = self._build()
        self.offers(m, unit.i)
        self.takes(m, unit.o)


NARROW = frozenset(Lane) - {Lane.BITS_64}
UNITS: dict[str, Callable[[], Any]] = {
    "bit unit": lambda: BitUnit(WIDTH, BIT_OPS, NARROW),
    "bit unit, pairs": lambda: BitUnit(WIDTH, BIT_OPS, Lane),
    "bit unit, logic": lambda: BitUnit(WIDTH, {Op.NOT}, ()),
    "bit unit, sums": lambda: BitUnit(WIDTH, {Op.COUNT_XOR}, NARROW, sums=True),
    "repack": lambda: Repack(WIDTH, Lane, BIT_OPS),
}
OF_UNITS = {
    "bit unit": {
        "it does not wait": (
            "bit_unit.pipeline",
            "(~valid[stage] | after) if closes",
            "Const(1) if closes",
        ),
    },
    "repack": {
        "it does not wait": (
            "datapath.repack",
            "free.eq(~self.o.valid | self.o.ready)",
            "free.eq(1)",
        ),
        "it takes the first of a pair for a beat": (
            "datapath.repack",
            "with m.If(free):",
            "with m.If(free | i.partial):",
        ),
    },
}


BUILT = frozenset(lane for lane in Lane if lane.bits <= WIDTH)


class SeesWholeElements(Contract):
    """Words of any lanes, tested or not, and taken in any cycles."""

    def claim(self, m: Module) -> None:
        m.submodules.tests = tests = LaneTests(WIDTH, BUILT, pairs=True)
        a, lane = self.anything(WIDTH, "a"), self.anything(2, "lane")
        take, test, negate = (self.anything(1, name) for name in ("take", "test", "negate"))
        m.d.comb += [
            tests.a.eq(a),
            tests.lane.eq(lane),
            tests.take.eq(take),
            tests.test.eq(test),
            tests.negate.eq(negate),
        ]
        follows, before = Signal(), Signal(WIDTH)
        first = test & (lane == Lane.BITS_64) & ~follows
        with m.If(take):
            m.d.sync += [follows.eq(first), before.eq(a)]
        for each in BUILT:
            with m.If(test & (lane == each)):
                # What a word of 64 bits leaves behind is for the next one, which has the same lane.
                self._expect(m, tests.o, each, a, negate, ~follows)
        with m.If(test & (lane == Lane.BITS_64)):
            found = a.any() | before.any()
            m.d.comb += [
                Assert(tests.o[0] == Mux(first, 0, found ^ negate)),
                Assert(tests.o[1:] == 0),
            ]
        m.d.comb += [
            Assert(self.inside(1, "tests.second") == follows),
            Assert(self.inside(1, "tests.held") == (follows & before.any())),
        ]

    @staticmethod
    def _expect(m: Module, o: Value, lane: Lane, a: Value, negate: Value, condition: Value) -> None:
        """Claim the tests of a word of whole elements, under ``condition``."""
        for byte in range(WIDTH // 8):
            low = 8 * byte
            found = a[low : low + lane.bits].any() ^ negate
            with m.If(condition):
                m.d.comb += Assert(o[byte] == (0 if low % lane.bits else found))


OF_TESTS = {
    "only the lowest of the upper bytes is seen": ("upper : upper + half]", "upper : upper + 1]"),
    "a wide element is negated twice": ("(one ^ self.negate)", "one"),
    "a narrow element sees its neighbour": (".any() & wide", ".any()"),
    "the first word is forgotten": ("held.eq(first & found[0])", "held.eq(0)"),
    "an upper byte shows": ("lowest[upper] = ~wide", "lowest[upper] = Const(1)"),
    "a word that waits is taken": ("with m.If(self.take):", "with m.If(1):"),
    "what is not tested is a pair": ("first.eq(self.test & ", "first.eq("),
}


LANE = Lane.BITS_16


class SumsEachRun(Contract):
    """Beats of any kind, in any cycles."""

    def claim(self, m: Module) -> None:
        m.submodules.row_sum = row_sum = RowSum(WIDTH, LANE)
        take, sums, more = (self.anything(1, name) for name in ("take", "sums", "more"))
        counts = self.anything(WIDTH, "counts")
        m.d.comb += [
            row_sum.take.eq(take),
            row_sum.sums.eq(sums),
            row_sum.more.eq(more),
            row_sum.counts.eq(counts),
            Assume(sums | ~more),
        ]
        ever, at_start = Signal(32), Signal(32)
        goes_on, summed = Signal(), Signal()
        for low in range(0, WIDTH, LANE.bits):
            m.d.comb += Assume(counts[low : low + LANE.bits] <= LANE.bits)
        with m.If(take):
            ones = sum(counts[low : low + LANE.bits] for low in range(0, WIDTH, LANE.bits))
            m.d.sync += [ever.eq(ever + ones), goes_on.eq(more), summed.eq(sums)]
            with m.If(~goes_on):
                m.d.sync += at_start.eq(ever)
        m.d.comb += Assert(row_sum.o == Mux(summed, (ever - at_start)[:32], 0))
        begins = self.inside(1, "row_sum.begins")
        m.d.comb += [Assert(begins == ~goes_on), Assert(summed | ~goes_on)]


OF_SUMS = {
    "a run goes on with the one before": ("Mux(begins, beat, total + beat)", "total + beat"),
    "what is not summed shows": ("Mux(self.sums, following, 0)", "following"),
    "a beat that waits is summed": ("with m.If(self.take):", "with m.If(1):"),
    "a lane is lost": ("range(0, len(self.counts),", "range(0, len(self.counts) // 2,"),
}

test_it_holds, test_a_planted_bug_is_found = proofs(
    *(
        Claim(
            GivesEachBeat,
            Reached,
            module="datapath.realigner",
            bugs={("wire", False): BUGS, ("register", True): DUAL_BUGS}.get((stage, dual)),
            within=6,
            stage=stage,
            dual=dual,
        )
        for stage in STAGES
        for dual in (False, True)
    ),
    *(
        Claim(KeepsOffers, Induction(DEPTH), bugs=OF_UNITS.get(name), within=DEPTH + 4, unit=name)
        for name in UNITS
    ),
    Claim(SeesWholeElements, Induction(2), module="bit_unit.lane_tests", bugs=OF_TESTS, within=4),
    Claim(SumsEachRun, Induction(2), module="bit_unit.row_sum", bugs=OF_SUMS, within=6),
)
