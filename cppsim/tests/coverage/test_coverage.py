"""Coverage: counts worked out by hand, and those of a second model; tables, tracefiles, pytest."""

import gc
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Fragment, Module, Signal
from amaranth.lib import data, enum
from amaranth.sim import Simulator as AmaranthSimulator

import cppsim
from cppsim import Coverage, designs
from cppsim.coverage import CoveragePoint, Measured
from cppsim.testing import (
    EXECUTORS,
    Bench,
    RandomDesign,
    random_circuit,
    random_machine,
    random_testbench,
)
from support.processes import run_suite
from support.seeds import seeds, slow
from support.small import phased


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
        sim = Bench(EXECUTORS[mode])
        return sim.run(self.module, sim.sets(self.on, values))


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


def test_simulators_that_are_made_outside_are_not_measured() -> None:
    with Coverage() as outer, Coverage() as inner:
        Lamp().simulate(1)
    Lamp().simulate(1)
    assert named(outer) == {}
    assert outer.table() == "nothing was measured\n"
    assert named(inner)["branch sync: if"] == 1
    assert {x.kind for x in inner.counts()} == {"branch", "statement"}, "no toggles unless asked"


def test_counts_outlast_simulators_and_resets_which_are_no_changes() -> None:
    with Coverage(toggles=True) as coverage:
        simulator = Lamp().simulate(1, 1, 1, 0, 0)
    once = named(coverage)
    simulator.reset()
    simulator.run()
    del simulator
    gc.collect()
    assert named(coverage) == {name: 2 * count for name, count in once.items()}
    with Coverage(toggles=True) as coverage:
        simulator = Lamp().simulate(1, 1)
    simulator.reset()
    simulator.run()
    assert named(coverage)["toggle level[0] 0->1"] == 2
    assert named(coverage)["toggle level[0] 1->0"] == 0


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

    sim = Bench(EXECUTORS["always"])
    with Coverage(toggles=True) as coverage:
        sim.run(m, sim.sets(on, (1, 0, 1)), clocks=None)
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
        *f"BRDA:{branch},0,0,2 BRDA:{other},0,1,1 BRF:2 BRH:2".split(),
        *f"DA:{first},2 DA:{second},1 LF:2 LH:2 end_of_record".split(),
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


@pytest.mark.parametrize("options", [[], slow(["-p", "xdist", "-n", "2"])])
def test_a_suite_is_merged_and_its_tests_are_distinguished(tmp_path: Path, options: Any) -> None:
    words = ("-p", "cppsim", "--cppsim-cover=lamp.info", "--cppsim-cover-toggles", *options)
    ran = run_suite(tmp_path, {"test_suite.py": SUITE}, *words)
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
    ran = run_suite(tmp_path, {"test_suite.py": SUITE}, "-p", "cppsim", *options)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in ran.stderr
    assert (tmp_path / "test_suite.py").read_text() == SUITE


# --- counts of a second model ---------------------------------------------------------------------


class _Model:
    """Counts in Amaranth's simulator, from samples before each edge of a clock."""

    def __init__(self, simulator: Any) -> None:
        design = simulator._design
        self._simulator = simulator
        self.signals: list[tuple[str, str, Any]] = []
        self.statements: list[tuple[str, Sequence[Any]]] = []
        clocks = set[int]()
        domains: dict[int, tuple[str, ClockDomain]] = {}
        for fragment in design.fragments:
            for name, domain in fragment.domains.items():
                domains[id(domain)] = (name, domain)
                clocks |= {id(domain.clk), id(domain.rst)}
        met = set(clocks)
        for fragment, about in self._ordered(design.fragment, design):
            for signal, name in about.signal_names.items():
                if id(signal) not in met:
                    met.add(id(signal))
                    self.signals.append((".".join(about.name), name, signal))
            if type(fragment) is Fragment:
                self.statements += fragment.statements.items()
        self.tests: dict[int, Any] = {}
        for _, statements in self.statements:
            self._find_tests(statements)
        self._samples: dict[Any, tuple[set[str], Sequence[int]]] = {}
        for name, domain in domains.values():
            simulator.add_process(self._sampling(name, domain))

    def _ordered(self, fragment: Any, design: Any) -> Iterator[tuple[Any, Any]]:
        yield fragment, design.fragments[fragment]
        for inner, *_ in fragment.subfragments:
            yield from self._ordered(inner, design)

    def _find_tests(self, statements: Any) -> None:
        for statement in statements:
            for _, inner, _ in getattr(statement, "cases", ()):
                self.tests[id(statement)] = statement.test
                self._find_tests(inner)

    def _sampling(self, name: str, domain: ClockDomain) -> Callable[[Any], Any]:
        values = [*(x for _, _, x in self.signals), *self.tests.values()]

        async def process(ctx: Any) -> None:
            async for hit, _, *found in ctx.tick(domain).sample(*values):
                if hit:
                    now = self._simulator._engine.now
                    names, before = self._samples.setdefault(now, (set(), found))
                    assert before == found
                    names.add(name)

        return process

    def toggles(self) -> dict[tuple[str, str, int], tuple[int, int]]:
        """Return the changes to 1 and to 0 by path, name and bit."""
        found = {}
        samples = [values for _, values in self._samples.values()]
        for number, (path, name, signal) in enumerate(self.signals):
            if "/contextlib.py" in signal.src_loc[0]:  # as the signal of a state machine is
                continue
            for bit in range(len(signal)):
                levels = [int(values[number]) >> bit & 1 for values in samples]
                pairs = list(itertools.pairwise(levels))
                found[path, name, bit] = pairs.count((0, 1)), pairs.count((1, 0))
        return found

    def conditions(self) -> list[tuple[str, int, int]]:
        """Return the kind, the line and the count of each statement and branch, in order."""
        found: list[tuple[str, int, int]] = []
        for domain, statements in self.statements:
            states = [
                dict(zip(self.tests, values[len(self.signals) :], strict=True))
                for names, values in self._samples.values()
                if domain == "comb" or domain in names
            ]
            self._count(statements, states, found)
        return found

    def _count(self, statements: Any, states: Sequence[Any], found: list[Any]) -> None:
        for statement in statements:
            if not hasattr(statement, "cases"):
                file, line = statement.src_loc
                if "/amaranth/hdl/" not in file:  # as `m.next` is
                    found.append(("statement", line, len(states)))
                continue
            left, taken = states, []
            for patterns, _, _ in statement.cases:
                here = [x for x in left if self._matches(statement, patterns, x)]
                left = [x for x in left if x not in here]
                taken.append(here)
            for (_, _, src_loc), here in zip(statement.cases, taken, strict=True):
                found.append(("branch", src_loc[1], len(here)))
            if _is_if(statement) and statement.cases[-1][0] is not None:
                found.append(("branch", statement.src_loc[1], len(left)))
            for (_, inner, _), here in zip(statement.cases, taken, strict=True):
                self._count(inner, here, found)

    def _matches(self, statement: Any, patterns: Any, state: Any) -> bool:
        if patterns is None:
            return True
        width = len(statement.test)
        text = format(state[id(statement)] & ((1 << width) - 1), f"0{width}b") if width else ""
        return any(all(x in ("-", y) for x, y in zip(p, text, strict=True)) for p in patterns)


def _is_if(statement: Any) -> bool:
    return type(statement.test).__name__ == "Concat" and all(
        patterns is None or [x for x in patterns[0] if x != "-"] == ["1"]
        for patterns, _, _ in statement.cases
    )


def _simulator(executor: str, design: RandomDesign, seed: int) -> Any:
    blind = replace(design, outputs=())
    work = random_testbench(blind, seed, lambda _: None, steps=40)
    return Bench(EXECUTORS[executor]).simulator(design.module, work, clocks=phased(design))


def _can_be_sampled(design: RandomDesign) -> bool:
    """Return whether Amaranth's simulator samples all tests: it fails for an index of 0 bits."""
    simulator: Any = AmaranthSimulator(design.module)
    model = _Model(simulator)

    async def testbench(ctx: Any) -> None:
        for test in model.tests.values():
            ctx.get(test)

    simulator.add_testbench(testbench)
    try:
        simulator.run()
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("make", "first"), [(random_circuit, 6), (random_machine, 0)])
@pytest.mark.parametrize("seed", seeds(1, 25))
def test_random_designs(make: Callable[[int], RandomDesign], first: int, seed: int) -> None:
    """The first circuit is a small one."""
    seed = next(x for x in itertools.count(first + seed, 1000) if _can_be_sampled(make(x)))
    with Coverage(toggles=True) as coverage:
        simulator = _simulator("always", make(seed), seed)
    assert simulator._engine.compiled
    simulator.run()
    counts = coverage.counts()

    reference = _simulator("pysim", make(seed), seed)
    model = _Model(reference)
    reference.run()

    found = [(x.kind, x.line, count) for x, count in counts.items() if x.kind != "toggle"]
    assert found == model.conditions()
    toggles = iter([(x, count) for x, count in counts.items() if x.kind == "toggle"])
    for (path, name, bit), pair in model.toggles().items():
        for change, count in zip(("0->1", "1->0"), pair, strict=True):
            point, mine = next(toggles)
            assert point.path == path
            assert point.name in (f"{name} {change}", f"{name}[{bit}] {change}")
            assert mine == count, point
    assert not list(toggles)
