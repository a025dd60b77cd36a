"""Suites for Amaranth's simulator run in compiled code without a change."""

import re
from pathlib import Path

import pytest

from support.processes import ALONE, run_python, run_suite
from support.seeds import slow

SUITE = """
import warnings

import pytest
from amaranth.hdl import Instance, Module, Signal
from amaranth.sim import Settle, Simulator, Tick
from amaranth.sim.core import Simulator as SameSimulator

import cppsim
from helpers import Counter, NamedSimulator, run


def engine_of(simulator):
    return type(simulator._engine)


def test_helpers_imported_before_the_plugin_was_set_up():
    assert run(Counter()) == [0, 1, 2]


@pytest.mark.parametrize("kind", [Simulator, SameSimulator])
def test_all_names_of_the_class(kind):
    assert engine_of(kind(Counter())).__name__ == ENGINE
    assert isinstance(kind(toplevel=Counter()), Simulator)


def test_subclasses():
    simulator = NamedSimulator(Counter(), name="mine")
    assert simulator.name == "mine"
    assert isinstance(simulator, NamedSimulator)
    assert engine_of(simulator).__name__ == ENGINE


def test_engines_that_are_asked_for():
    assert engine_of(Simulator(Counter(), engine="pysim")).__name__ == "PySimEngine"


def test_what_cannot_be_compiled():
    m = Module()
    m.submodules.cell = Instance("CELL", o_o=Signal())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulator(m)


def test_processes_that_are_generators():
    dut, seen = Counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulator = Simulator(dut)
        simulator.add_clock(1e-6)

        def process():
            for _ in range(3):
                yield Tick()
                yield Settle()
                seen.append((yield dut.count))

        simulator.add_process(process)
        simulator.run()
    assert seen == [1, 2, 3]
"""

HELPERS = """
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.sim import Simulator


class Counter(Elaboratable):
    def __init__(self):
        self.count = Signal(8)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.count.eq(self.count + 1)
        return m


class NamedSimulator(Simulator):
    def __init__(self, design, *, name):
        super().__init__(design)
        self.name = name


def run(dut):
    simulator, seen = Simulator(dut), []

    async def work(ctx):
        for _ in range(3):
            seen.append(ctx.get(dut.count))
            await ctx.tick()

    simulator.add_clock(1e-6)
    simulator.add_testbench(work)
    simulator.run()
    return seen
"""


def passed(folder: Path, files: dict[str, str], *options: str, others: bool = False) -> str:
    """Run a suite of ``files``, expect that it passes, and return pytest's output."""
    ran = run_suite(folder, files, *options, others=others)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def suite(folder: Path, engine: str, *options: str, others: bool = False) -> str:
    text = SUITE.replace("ENGINE", repr(engine))
    files = {"test_suite.py": text, "helpers.py": HELPERS, "conftest.py": "from helpers import run"}
    output = passed(folder, files, *options, others=others)
    assert " 7 passed" in output, output
    return output


@pytest.mark.parametrize(
    ("others", "options"), [(False, []), slow(True, []), slow(True, ["-n", "2"])]
)
def test_a_suite_runs_compiled_and_the_summary_says_what_did_not(
    tmp_path: Path, others: bool, options: list[str]
) -> None:
    loaded = [] if others else ["-p", "cppsim"]  # else it is loaded as all installed plugins are
    text = suite(tmp_path, "_CompiledEngine", *loaded, "--cppsim=always", *options, others=others)
    assert "cppsim, mode always" in text
    assert "compiled code ran 6 of 6 cycles, in 7 of 8 simulations" in text
    assert "1 in Amaranth's simulator: Instance is not known here" in text


SLOW = """
import pytest
from amaranth.sim import Simulator
from helpers import Counter


async def ticks(ctx, count):
    for _ in range(1500):
        await ctx.tick()


async def turns(ctx, count):
    while True:
        await helper(ctx)
        await ctx.delay(3e-7)


async def helper(ctx):
    await ctx.tick()


async def quick(ctx, count):
    await ctx.tick().repeat(1500)


async def few(ctx, count):
    for _ in range(300):
        await ctx.tick()


async def changes(ctx, count):
    while True:
        await ctx.changed(count)


async def rare(ctx, count):
    while True:
        await ctx.posedge(count[7])


@pytest.mark.parametrize("work", [ticks, turns, quick, few, changes, rare])
def test_it(work):
    dut = Counter()
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def testbench(ctx):
        await work(ctx, dut.count)

    simulator.add_testbench(testbench)
    simulator.run_until(3000e-6)
"""


@pytest.mark.parametrize("options", [[], slow(["-p", "xdist", "-n", "2"])])
def test_the_summary_says_why_a_test_is_slow(tmp_path: Path, options: list[str]) -> None:
    text = _slow_suite(tmp_path, "--cppsim=always", *options)
    page = (Path(__file__).parents[1] / "docs" / "from_amaranth.md").read_text(encoding="utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0]
    assert "test_slow.py:9: await ctx.tick()" in shown
    times = re.compile("[0-9,]+ times")
    assert times.sub("n times", shown) in times.sub("n times", text)
    for name in ("quick", "few", "rare"):
        assert f"[{name}]" not in text


def test_the_summary_says_what_check_costs(tmp_path: Path) -> None:
    text = _slow_suite(tmp_path, "--cppsim=check", "-k", "few")
    assert "mode check compares both simulators at every point in time" in text
    assert "Python ran in" not in text


def _slow_suite(folder: Path, *options: str) -> str:
    return passed(folder, {"test_slow.py": SLOW, "helpers.py": HELPERS}, "-p", "cppsim", *options)


def test_a_suite_is_checked(tmp_path: Path) -> None:
    text = suite(tmp_path, "CheckedEngine", "-p", "cppsim", "--cppsim=check")
    assert "compiled code ran 6 of 6 cycles, in 7 of 8 simulations" in text


@pytest.mark.parametrize(
    ("others", "options"), [(False, ["-p", "cppsim", "--cppsim=off"]), slow(True, [])]
)
def test_a_suite_is_left_to_amaranth_unless_asked(
    tmp_path: Path, others: bool, options: list[str]
) -> None:
    assert "cppsim, mode" not in suite(tmp_path, "PySimEngine", *options, others=others)


def test_the_plugin_without_a_mode_is_refused_in_one_line(tmp_path: Path) -> None:
    ran = run_python("-m", "pytest", "-p", "cppsim", cwd=tmp_path, **ALONE)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    message = "ERROR: -p cppsim: loads the plugin and no more; expected --cppsim=always"
    assert ran.stderr.strip() == message


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        # pytest loads it in every run, of whatever project.
        ("off", {"amaranth", "numpy", "cppsim.simulator", "cppsim.compiling"}),
        # A suite of many short simulations would wait for them.
        ("always", {"numpy", "cppsim.batch", "cppsim.checking"}),
    ],
)
def test_the_plugin_imports_what_a_mode_needs(tmp_path: Path, mode: str, names: set[str]) -> None:
    test = (
        "import sys\n\n\ndef test_imports():\n"
        "    assert 'cppsim.pytest_plugin' in sys.modules\n"
        f"    assert {names} & set(sys.modules) == set()\n"
    )
    passed(tmp_path, {"test_imports.py": test}, "-p", "cppsim", f"--cppsim={mode}")
