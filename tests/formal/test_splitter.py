"""Bursts cover their span in order, without gaps, and never cross a block of 16 beats."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from bitlane_rtl.abi import BEATS_PER_BLOCK
from bitlane_rtl.addresses.bursts import Splitter
from bitlane_rtl.configuration import Configuration
from support.formal.contract import Contract, taken
from support.formal.proof import Bug, Proof
from support.formal.prover import Induction

pytestmark = pytest.mark.slow

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

    def __init__(
        self, configuration: Configuration, *, gap: bool = False, helped: bool = False
    ) -> None:
        super().__init__()
        self._configuration = configuration
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


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_bursts_sum_up_to_their_span(name: str, gap: bool, proof: Proof) -> None:
    proof.holds(SumsUp(CONFIGURATIONS[name], gap=gap, helped=True), Induction(2))


SPLITTER = "addresses.bursts"
BUGS = {
    "last beat is cut off": (
        "Mux(ends_here, beats, finish)",
        "Mux(ends_here, beats, self.i.p.extent)",
    ),
    "burst goes on into the next block": ("Mux(final, rest, ~start)", "Mux(final, rest, 15)"),
    "carry into the block is lost": ("~(long | in_block[-1])", "~long"),
    "one block too many": ("final.eq(following == blocks)", "final.eq(index == blocks)"),
    "single is told late": ("self.o.p.single.eq(single)", "self.o.p.single.eq(rest == 0)"),
    "next span is taken too soon": ("self.o.ready & final", "self.o.ready"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    proof.finds(Bug(SPLITTER, *BUGS[bug]), SumsUp(CONFIGURATIONS["16-bit addresses"]), within=10)
