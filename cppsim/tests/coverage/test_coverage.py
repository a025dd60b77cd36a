"""Coverage of small designs with counts worked out by hand: tables, tracefiles, pytest."""

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, enum

import cppsim
from cppsim import Coverage, designs
from cppsim.coverage import CoveragePoint
from cppsim.netlist.covered import Measured
from support.processes import run_python
from support.seeds import slow


class Lamp:
    """A lamp that toggles while it is on."""

    def __init__(self) -> None:
        self.on, self.level = Signal(name="on"), Signal(2, name="level")
        self.module = m = Module()
        with m.If(self.on):
            m.d.sync += self.level.eq(self.level + 1)
        with m.Else():
            m.d.sync += self.level.eq(0)

    def simulate(self, *values: int, mode: str = "always") -> Any:
        """Hold each of ``values`` for a cycle."""
        simulator: Any = cppsim.Simulator(self.module, mode=mode)

        async def testbench(ctx: Any) -> None:
            for value in values:
                ctx.set(self.on, value)
                await ctx.tick()

        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        simulator.run()
        return simulator


def named(coverage: Coverage, test: str | None = None) -> dict[str, int]:
    return {f"{x.kind} {x.name}": count for x, count in coverage.counts(test).items()}


BRANCHES = {"branch sync: if": 3, "branch sync: else": 2}


@pytest.mark.parametrize("mode", ["always", "check"])
def test_the_counts_of_a_small_design(mode: str) -> None:
    with Coverage(toggles=True) as coverage:
        Lamp().simulate(1, 1, 1, 0, 0, mode=mode)
    counts = named(coverage)
    assert counts.items() >= BRANCHES.items()
    # Before the edges the level is 0, 1, 2, 3, 0.
    assert {name: count for name, count in counts.items() if "toggle" in name} == {
        "toggle on 0->1": 0,
        "toggle on 1->0": 1,
        "toggle level[0] 0->1": 2,
        "toggle level[0] 1->0": 2,
        "toggle level[1] 0->1": 1,
        "toggle level[1] 1->0": 1,
    }
    lines = [x.line for x in coverage.counts() if x.kind == "statement"]
    assert lines == sorted(lines)
    assert [count for x, count in coverage.counts().items() if x.kind == "statement"] == [3, 2]


def test_assignments_to_views_have_no_line_of_a_user() -> None:
    """`View.eq` gives all of them the same line of Amaranth's own file."""

    class Kind(enum.Enum, shape=1):
        LOW = 0
        HIGH = 1

    class Flags(enum.Flag, shape=1):
        ON = 1

    m, pair = Module(), data.StructLayout({"low": 1, "high": 1})
    for shape in (pair, Kind, Flags):
        m.d.sync += Signal(shape).eq(Signal(shape))
    m.d.sync += Signal().eq(1)
    with Coverage(toggles=True) as coverage:
        simulator = cppsim.Simulator(m)
    simulator.add_clock(1e-6)
    simulator.run_until(3e-6)
    statements = [x for x in coverage.counts() if x.kind == "statement"]
    assert [Path(x.file).name for x in statements] == [Path(__file__).name]


def test_toggles_are_counted_only_on_request() -> None:
    with Coverage() as coverage:
        Lamp().simulate(1, 1, 1, 0, 0)
    assert {x.kind for x in coverage.counts()} == {"branch", "statement"}
    assert named(coverage).items() >= BRANCHES.items()


def test_simulators_that_are_made_outside_are_not_measured() -> None:
    with Coverage() as outer, Coverage() as inner:
        Lamp().simulate(1)
    Lamp().simulate(1)
    assert named(outer) == {}
    assert outer.table() == "nothing was measured\n"
    assert named(inner)["branch sync: if"] == 1


def test_counts_outlast_simulators_and_resets() -> None:
    with Coverage() as coverage:
        simulator = Lamp().simulate(1, 1, 1, 0, 0)
    simulator.reset()
    simulator.run()
    del simulator
    gc.collect()
    assert named(coverage).items() >= {name: 2 * count for name, count in BRANCHES.items()}.items()


def test_a_reset_is_not_a_change() -> None:
    with Coverage(toggles=True) as coverage:
        simulator = Lamp().simulate(1, 1)
    assert named(coverage)["toggle level[0] 0->1"] == 1
    simulator.reset()
    simulator.run()
    counts = named(coverage)
    assert counts["toggle level[0] 0->1"] == 2
    assert counts["toggle level[0] 1->0"] == 0


def test_each_test_has_its_own_counts() -> None:
    with Coverage() as coverage:
        for test in ("first", "second"):
            coverage.test = test
            Lamp().simulate(int(test == "first"))
    assert coverage.tests() == ["first", "second"]
    assert named(coverage, "first")["branch sync: if"] == 1
    assert named(coverage, "first")["branch sync: else"] == 0
    assert named(coverage, "second")["branch sync: if"] == 0
    assert named(coverage)["branch sync: if"] == 1


def test_counts_of_another_process_are_added() -> None:
    total = Coverage()
    for values in ((1, 1, 1), (0, 0)):
        with Coverage() as coverage:
            Lamp().simulate(*values)
        total.add_data(coverage.data())
    assert named(total).items() >= BRANCHES.items()
    assert all(type(x) is CoveragePoint for x in total.counts())


def test_a_design_without_a_clock_is_counted_at_each_change() -> None:
    m, on, off = Module(), Signal(name="on"), Signal(name="off")
    with m.If(on):
        m.d.comb += off.eq(0)
    with m.Else():
        m.d.comb += off.eq(1)

    async def testbench(ctx: Any) -> None:
        for value in (1, 0, 1):
            ctx.set(on, value)
            await ctx.delay(1e-6)

    with Coverage(toggles=True) as coverage:
        simulator = cppsim.Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
    counts = named(coverage)
    # At power-on it is off.
    assert [counts[f"branch comb: {x}"] for x in ("if", "else")] == [2, 2]
    assert counts["toggle off 1->0"] == 2


def test_a_library_without_coverage_is_another_one(fresh_cache: Path) -> None:
    prepared: Any = cppsim.Simulator(Lamp().module)._design
    texts = [designs.written(prepared, measured)[1].text for measured in Measured]
    libraries = {designs.built(prepared, measured)[1].library for measured in Measured}
    assert len(libraries) == 3
    assert ["overed" in text for text in texts] == [False, True, True]


def test_the_table_and_what_is_missing() -> None:
    with Coverage() as coverage:
        Lamp().simulate(1)
    head, top, total = coverage.table().splitlines()
    assert head.split() == ["module", "statements", "branches", "toggles"]
    assert " ".join(top.split()) == "top 1 of 2 1 of 2 -"
    assert " ".join(total.split()) == "all 1 of 2 1 of 2 -"
    branch, statement = sorted(coverage.missing().splitlines(), key=lambda x: "statement" in x)
    assert branch.startswith(f"{__file__}:")
    assert branch.endswith(": branch top: sync: else")
    assert statement.endswith(": statement top: sync")


def test_a_tracefile(tmp_path: Path) -> None:
    with Coverage() as coverage:
        coverage.test = "tests/test_lamp.py::test[1]"
        Lamp().simulate(1, 1, 0)
    coverage.write_lcov(tmp_path / "lamp.info")
    (branch, other), (first, second) = (
        sorted({x.line for x in coverage.counts() if x.kind == kind})
        for kind in ("branch", "statement")
    )
    assert (tmp_path / "lamp.info").read_text().splitlines() == [
        "TN:tests_test_lamp_py__test_1_",
        f"SF:{__file__}",
        f"BRDA:{branch},0,0,2",
        f"BRDA:{other},0,1,1",
        "BRF:2",
        "BRH:2",
        f"DA:{first},2",
        f"DA:{second},1",
        "LF:2",
        "LH:2",
        "end_of_record",
    ]


SUITE = """
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator


@pytest.mark.parametrize("value", [0, 1])
def test_lamp(value):
    m, on, level = Module(), Signal(), Signal()
    with m.If(on):
        m.d.sync += level.eq(~level)

    async def testbench(ctx):
        ctx.set(on, value)
        await ctx.tick().repeat(5)

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
"""

_ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
_PLUGIN = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "cppsim")


def _suite(folder: Path, *options: str) -> Any:
    (folder / "test_suite.py").write_text(SUITE)
    path = str(Path(__file__).parents[2] / "src")
    environment = {name: "" for name in os.environ if name.startswith("PYTEST")} | _ALONE
    return run_python(*_PLUGIN, *options, cwd=folder, PYTHONPATH=path, **environment)


@pytest.mark.parametrize("options", [[], slow(["-p", "xdist", "-n", "2"])])
def test_a_suite_is_merged_and_its_tests_are_distinguished(tmp_path: Path, options: Any) -> None:
    ran = _suite(tmp_path, "--cppsim-cover=lamp.info", "--cppsim-cover-toggles", *options)
    assert ran.returncode == 0, ran.stdout
    assert "cppsim, coverage in lamp.info" in ran.stdout
    [total] = [x for x in ran.stdout.splitlines() if x.startswith("all ")]
    assert " ".join(total.split()) == "all 1 of 1 2 of 2 2 of 4"
    text = (tmp_path / "lamp.info").read_text()
    assert sorted(x for x in text.splitlines() if x.startswith("TN:")) == [
        "TN:test_suite_py__test_lamp_0_",
        "TN:test_suite_py__test_lamp_1_",
    ]
    assert sorted(x for x in text.splitlines() if x.startswith("DA:")) == ["DA:11,0", "DA:11,5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cppsim-cover", "test_suite.py"], "test_suite.py is not a tracefile of LCOV"),
        (["--cppsim-cover", "."], ". is not a tracefile of LCOV"),
        (["--cppsim-cover-toggles"], "expected --cppsim-cover before it"),
        (["--cppsim-cover", "--cppsim=off"], "needs compiled code; expected --cppsim=always"),
    ],
)
def test_options_that_are_refused_in_one_line(
    tmp_path: Path, options: list[str], message: str
) -> None:
    ran = _suite(tmp_path, *options)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in ran.stderr
    assert (tmp_path / "test_suite.py").read_text() == SUITE
