"""Hooks of all tests: the profiles of the tiers, the order of the modules, and the closing lines.

A tier is a marker and a profile of hypothesis: `make test` leaves out tests marked ``slow`` and
loads ``quick``; `make check` runs all tests with ``full``. ``explore`` is ``full`` with new random
examples in every run. Which tests a tier runs never depends on the machine.

A test reports with ``record_property("report", line)``; the lines are printed after the results.
"""

import gc
import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.seeds import FULL, QUICK

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store-durations",
        action="store_true",
        help=f"write the seconds of each module that ran to {DURATIONS.relative_to(ROOT.parent)}",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long modules first, so that no worker is left alone with one at the end."""
    seconds = json.loads(DURATIONS.read_text(encoding="utf-8"))
    items.sort(key=lambda item: seconds.get(_module(item.nodeid), 1.0), reverse=True)


@pytest.fixture(scope="module", autouse=True)
def _left_out_of_collections() -> None:
    """Keep objects that exist before a module's tests out of its garbage collections."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    seconds = defaultdict[str, float](float)
    lines = list[str]()
    for report in (x for stat in terminalreporter.stats.values() for x in stat):
        if isinstance(report, pytest.TestReport):
            seconds[_module(report.nodeid)] += report.duration
            if report.when == "call":
                lines += [str(text) for name, text in report.user_properties if name == "report"]
    if lines:
        terminalreporter.section("reports")
    for line in sorted(lines):
        terminalreporter.line(line)
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
