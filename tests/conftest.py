"""Hooks of all tests: the profiles of the tiers, the tests that run, and the closing lines.

A tier is a marker and a profile of hypothesis: `make test` leaves out tests marked ``slow`` and
loads ``quick``; `make check` runs all tests with ``full``. ``explore`` is ``full`` with new random
examples in every run. Which tests a tier runs never depends on the machine.

``--store-passed FILE`` writes which tests passed; ``--except-passed FILE`` leaves them out, unless
the tier now gives them more examples or smaller steps. So `.ci/run` runs each test once.

A test reports with ``record_property("report", line)``; the lines are printed after the results.
"""

import gc
import json
import signal
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support import seeds
from support.seeds import FULL, QUICK
from support.verdicts import run_marked, summary

# Elaboration allocates many objects, and nearly none of them is garbage so early.
gc.set_threshold(10_000)

settings.register_profile(
    QUICK,
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(FULL, settings.get_profile(QUICK), max_examples=100)
settings.register_profile("explore", settings.get_profile(FULL), derandomize=False)
settings.load_profile(QUICK)

ROOT = Path(__file__).parent
DURATIONS = ROOT / "durations.json"
"""Duration of each module in seconds, as the last run with ``--store-durations`` measured it."""

SHOWN = 10
"""Number of modules in the list of the slowest."""

DEEPER = ("deeper", True)
"""Property of a test that tries more in a deeper tier."""

ASKED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store-passed", metavar="FILE", type=Path, help="write the tests that passed to FILE"
    )
    parser.addoption(
        "--except-passed",
        metavar="FILE",
        type=Path,
        help="leave out the tests that FILE names, which pass at any depth",
    )
    parser.addoption(
        "--store-durations",
        action="store_true",
        help=f"write the seconds of each module that ran to {DURATIONS.relative_to(ROOT.parent)}",
    )


def pytest_configure() -> None:
    """Let programs that tests start end at Ctrl-C: behind a shell's ``&`` they would ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run long modules first, so that no worker is left alone with one at the end."""
    if path := config.getoption("--except-passed"):
        passed = set(json.loads(path.read_text(encoding="utf-8")))
        known = [item for item in items if item.nodeid in passed]
        config.hook.pytest_deselected(items=known)
        items[:] = [item for item in items if item not in set(known)]
    seconds = json.loads(DURATIONS.read_text(encoding="utf-8"))
    items.sort(key=lambda item: seconds.get(_module(item.nodeid), 1.0), reverse=True)


@pytest.fixture(scope="module", autouse=True)
def _left_out_of_collections() -> None:
    """Keep objects that exist before a module's tests out of its garbage collections."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note the calls of `seeds` before the test."""
    item.stash[ASKED] = seeds.asked
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Note whether a deeper tier tries more within the test, not only other parameters."""
    try:
        return (yield)
    finally:
        function, module = getattr(item, "obj", None), getattr(item, "module", None)
        if (
            seeds.asked > item.stash[ASKED]
            or getattr(function, "is_hypothesis_test", False)
            or hasattr(module, "stride")
        ):
            item.user_properties.append(DEEPER)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Take the verdict of a test that judges sources from the cache, if they are the same."""
    return run_marked(pyfuncitem) or None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    seconds = defaultdict[str, float](float)
    lines, verdicts = list[str](), list[str]()
    if path := config.getoption("--store-passed"):
        reports = terminalreporter.stats.get("passed", [])
        passed = sorted({each.nodeid for each in reports if DEEPER not in each.user_properties})
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(passed, indent=1) + "\n", encoding="utf-8")
    for report in (x for stat in terminalreporter.stats.values() for x in stat):
        if isinstance(report, pytest.TestReport):
            seconds[_module(report.nodeid)] += report.duration
            if report.when == "call":
                lines += [str(text) for name, text in report.user_properties if name == "report"]
                verdicts += [
                    str(text) for name, text in report.user_properties if name == "verdict"
                ]
    if lines:
        terminalreporter.section("reports")
    for line in sorted(lines):
        terminalreporter.line(line)
    if verdicts:
        terminalreporter.line(summary(verdicts))
    slowest = sorted(seconds.items(), key=lambda each: -each[1])
    if len(slowest) > SHOWN:
        total = sum(seconds.values())
        terminalreporter.section(f"slowest modules, of {total:.0f} s on all workers")
        for module, taken in slowest[:SHOWN]:
            terminalreporter.line(f"{taken:6.1f} s  {module}")
    if config.getoption("--store-durations"):
        known = json.loads(DURATIONS.read_text(encoding="utf-8"))
        known |= {module: round(taken, 1) for module, taken in slowest}
        known = {name: known[name] for name in sorted(known) if (ROOT / name).is_file()}
        DURATIONS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _module(nodeid: str) -> str:
    """Return the path of a test's module below ``tests``."""
    return nodeid.partition("::")[0].removeprefix("tests/")
