"""`cppsim.testing` finds executors that differ, and returns the same for the same seed."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from cppsim.testing import (
    EXECUTORS,
    KINDS,
    Bench,
    random_clocks,
    random_design,
    random_testbench,
    same_on,
    ticks,
    trace,
    waveforms,
)
from support.small import counter, foreign, refused


class Late(Simulator):
    """A simulator that is wrong: its clocks begin later."""

    def add_clock(self, period: Any, *, phase: Any = None, **options: Any) -> None:
        super().add_clock(period, phase=(phase or 0) + period / 3, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, r"entry 0 is .*, expected \(500000000, "),
        ({"traces": ()}, r"entry 0 has at 'bench\.top\.clk: wire 1' .*, expected "),
    ],
)
def test_an_executor_that_differs_is_named(options: dict[str, Any], text: str) -> None:
    @same_on("always", Late)
    def compare(sim: Bench) -> None:
        m, count = counter()
        work = ticks(3) if options else sim.awaits(3, lambda ctx: ctx.tick(), count)
        sim.run(m, work, **options)

    refused(AssertionError, rf"^<class '.*Late'>: {text}", compare)


def test_fewer_entries_are_a_difference() -> None:
    @same_on("always")
    def compare(sim: Bench) -> None:
        sim.run(counter()[0], ticks(1))
        sim.seen += [1, 2][: 2 - sim.compiled]

    with pytest.raises(AssertionError, match=r"^always: 1 entries, expected 2: "):
        compare()


def test_a_test_that_sees_nothing_fails() -> None:
    with pytest.raises(AssertionError, match=r"^the test has to see something"):
        same_on()(lambda sim: sim.run(counter()[0], ticks(1)))()


@pytest.mark.filterwarnings("ignore::cppsim.FallbackWarning")
def test_a_design_that_is_left_to_amaranth_is_not_compared() -> None:
    @same_on("always")
    def compare(sim: Bench) -> None:
        sim.simulator(foreign(), clocks=None)
        sim.seen.append("seen")

    with pytest.raises(AssertionError, match=r"^left to Amaranth's simulator: Instance is not"):
        compare()


@pytest.mark.parametrize("kind", KINDS)
def test_random_designs_of_all_kinds(kind: str) -> None:
    # Others are compiled by cpp/test_fuzz and running/test_changes.
    make = EXECUTORS["always" if kind == "circuit" else "pysim"]
    sim, design = Bench(make), random_design(1, kind)
    work = random_testbench(design, 1, sim.seen.append, steps=9)
    sim.run(design.module, work, clocks=random_clocks(design, 1))
    assert trace({1: random_design(1, kind)}, "pysim", steps=9)[1] == sim.seen[:9]


def test_an_unknown_kind_names_the_kinds() -> None:
    with pytest.raises(ValueError, match=r"^'fast' is not a kind of design; expected expr"):
        random_design(1, "fast")


@pytest.mark.parametrize(
    ("body", "text"), [("#0\n#0\n", "#0 comes after #0"), ("x!\n", "'x!' is not a change")]
)
def test_bad_waveforms_are_refused(body: str, text: str) -> None:
    header = "$scope module top $end\n$var wire 1 ! clk $end\n$upscope $end\n"
    with pytest.raises(ValueError, match=f"^{text}"):
        waveforms(f"{header}$enddefinitions $end\n{body}")
