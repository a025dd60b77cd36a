"""A test depends on all bits of its element and on no others, also if the element has two words."""

import pytest
from amaranth.hdl import Assert, Module, Mux, Signal, Value

from bitlane_rtl.abi import Lane
from bitlane_rtl.bit_unit.lane_tests import LaneTests
from support.formal.contract import Contract
from support.formal.proof import Bug, Proof
from support.formal.prover import Induction

pytestmark = pytest.mark.slow

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


def test_a_test_sees_its_whole_element_and_nothing_else(proof: Proof) -> None:
    proof.holds(SeesWholeElements(), Induction(2))


LANE_TESTS = "bit_unit.lane_tests"
BUGS = {
    "only the lowest of the upper bytes is seen": ("upper : upper + half]", "upper : upper + 1]"),
    "a wide element is negated twice": ("(one ^ self.negate)", "one"),
    "a narrow element sees its neighbour": (".any() & wide", ".any()"),
    "the first word is forgotten": ("held.eq(first & found[0])", "held.eq(0)"),
    "an upper byte shows": ("lowest[upper] = ~wide", "lowest[upper] = Const(1)"),
    "a word that waits is taken": ("with m.If(self.take):", "with m.If(1):"),
    "what is not tested is a pair": ("first.eq(self.test & ", "first.eq("),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    proof.finds(Bug(LANE_TESTS, *BUGS[bug]), SeesWholeElements(), within=4)
