"""The loop nest sends each run or element to every stream once and in order, and then ends."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value, signed

from bitlane_rtl.addresses.loop_nest import LoopNest
from bitlane_rtl.command import STREAMS, StreamFlags
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.streams.register_slices import SkidBuffer
from support.formal.contract import Contract, before, taken
from support.formal.proof import Bug, Proof
from support.formal.prover import Reached

pytestmark = pytest.mark.slow

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


def test_every_stream_gets_all_its_steps(proof: Proof) -> None:
    proof.holds(IssuesAll(), Reached)


NEST = "addresses.loop_nest"
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


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, proof: Proof) -> None:
    proof.finds(Bug(NEST, *BUGS[bug]), IssuesAll(), within=10)
