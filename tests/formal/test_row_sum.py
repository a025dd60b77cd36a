"""A row sum is what all counts ever taken come to, less what they came to when its run began."""

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal

from bitlane_rtl.abi import Lane
from bitlane_rtl.bit_unit.row_sum import RowSum
from support.formal.contract import Contract
from support.formal.proof import Bug, Proof
from support.formal.prover import Induction

pytestmark = pytest.mark.slow

WIDTH = 32
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


def test_a_row_sum_is_that_of_its_run(proof: Proof) -> None:
    proof.holds(SumsEachRun(), Induction(2))


ROW_SUM = "bit_unit.row_sum"
BUGS = {
    "a run goes on with the one before": ("Mux(begins, beat, total + beat)", "total + beat"),
    "what is not summed shows": ("Mux(self.sums, following, 0)", "following"),
    "a beat that waits is summed": ("with m.If(self.take):", "with m.If(1):"),
    "a lane is lost": ("range(0, len(self.counts),", "range(0, len(self.counts) // 2,"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    proof.finds(Bug(ROW_SUM, *BUGS[bug]), SumsEachRun(), within=6)
