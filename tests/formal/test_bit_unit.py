"""A test of an element depends on all its bits alone; a row sum is that of the beats of its run."""

from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from bitlane_rtl.abi import Lane
from bitlane_rtl.bit_unit.lane_tests import LaneTests
from bitlane_rtl.bit_unit.row_sum import RowSum
from support.formal.contract import Contract
from support.formal.proof import Claim, proofs
from support.formal.prover import Induction

WIDTH = 32
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


BUGS = {
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
    Claim(SeesWholeElements, Induction(2), module="bit_unit.lane_tests", bugs=BUGS, within=4),
    Claim(SumsEachRun, Induction(2), module="bit_unit.row_sum", bugs=OF_SUMS, within=6),
)
