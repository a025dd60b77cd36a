"""A plugin of pytest for all tests: which of them run, and the closing lines. No tests here.

A tier is a marker and a profile of hypothesis: `make test` loads ``quick`` and leaves out tests
marked ``slow`` or ``deep``; `make check` loads ``full`` and leaves out those marked ``deep``;
`make deep` runs all with ``deep``, which has new random examples in every run. Which tests a tier
runs depends on the commit, never on the machine: `support.rotation`.

``--store-passed FILE`` writes which tests passed; ``--except-passed FILE`` leaves them out, unless
the tier now gives them more examples or smaller steps. So `.ci/run` runs each test once. A record
holds for the files of the project that the first run began with.

``--except-known`` leaves out modules that passed before with the same inputs: `support.known`.

``--store-durations FILE`` adds the seconds of each module to those of FILE.

A test reports with ``record_property("report", line)``; the lines are printed after the results.
"""

import gc
import json
import signal
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings

from bitlane_boards.flow import YOSYS, run_tool, silent

from . import durations, rotation, seeds, verdicts
from .known import KnownModules, expect_unchanged, files, passed_before
from .seeds import FULL, QUICK

# Elaboration allocates many objects, and nearly none of them is garbage so early.
gc.set_threshold(10_000)

SHOWN = 10
"""Number of modules in the list of the slowest."""

DEEPER = ("deeper", True)
"""Property of a test that tries more in a deeper tier."""

ASKED = pytest.StashKey[int]()
FILES = pytest.StashKey[str]()
KNOWN = pytest.StashKey[KnownModules]()


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
        "--except-known",
        action="store_true",
        help="leave out the modules that passed in such a run with the same inputs",
    )
    parser.addoption(
        "--store-durations",
        metavar="FILE",
        type=Path,
        help="add the seconds of each module that ran to those of FILE",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let programs that tests start end at Ctrl-C: behind a shell's ``&`` they would ignore it."""
    if config.getoption("--except-known"):
        config.stash[KNOWN] = KnownModules(config)
        config.pluginmanager.register(config.stash[KNOWN])
    passed_before(config)
    if not hasattr(config, "workerinput"):
        expect_unchanged(config)
        if config.getoption("--store-passed"):
            config.stash[FILES] = files(config)
    try:
        rotation.commit()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile Yosys first: a compilation in one worker breaks runs of Yosys in other workers."""
    workers = session.config.getoption("numprocesses", 0)
    if workers and settings.get_current_profile_name() != QUICK:
        with TemporaryDirectory() as folder:
            run_tool(YOSYS, ["-V"], Path(folder), Path(folder, "log"), silent)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests, and run long modules first: no worker is left alone with one at the end."""
    names = passed_before(config)
    _leave_out(config, items, {item for item in items if item.nodeid in names})
    if settings.get_current_profile_name() == FULL:
        again = bool(config.getoption("--except-passed"))
        _leave_out(config, items, rotation.left_out(items, passed=again))
    seconds = durations.read()
    items.sort(key=lambda item: seconds.get(durations.module(item.nodeid), 1.0), reverse=True)


def _leave_out(config: pytest.Config, items: list[pytest.Item], left: set[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


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
    return verdicts.run_marked(pyfuncitem) or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store the verdict of a test that judges sources once it has passed in all phases."""
    report = yield
    verdicts.settle(item, report)
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if hasattr(config, "workerinput"):
        return  # xdist's workers have a part of the tests each, and the main process has all
    found = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    if path := config.getoption("--store-passed"):
        ended = terminalreporter.stats.get("passed", [])
        passed = sorted({each.nodeid for each in ended if DEEPER not in each.user_properties})
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {"files": config.stash[FILES], "passed": passed}
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    known = config.stash.get(KNOWN, None)
    closing = [*sorted(map(str, _told(found, "report"))), *_meaning(found, known)]
    if known and known.passed_all_before(exitstatus):
        closing.append("no test ran: all selected tests are known to pass")
    if closing:
        terminalreporter.section("reports")
    for line in closing:
        terminalreporter.line(line)
    seconds = defaultdict[str, float](float)
    for report in found:
        seconds[durations.module(report.nodeid)] += report.duration
    slowest = sorted(seconds.items(), key=lambda each: -each[1])
    if len(slowest) > SHOWN:
        total = sum(seconds.values())
        terminalreporter.section(f"slowest modules, of {total:.0f} s on all workers")
        for module, taken in slowest[:SHOWN]:
            terminalreporter.line(f"{taken:6.1f} s  {module}")
    if path := config.getoption("--store-durations"):
        left_out = known.left_out if known else set[str]()
        durations.add(path, seconds, _with_stored_verdicts(found) | left_out)


def _told(reports: Iterable[pytest.TestReport], name: str) -> list[Any]:
    """Return the values of the property ``name`` of the tests."""
    return [
        value
        for report in reports
        if report.when == "call"
        for property, value in report.user_properties  # noqa: A001 - pytest's word for it
        if property == name
    ]


def _with_stored_verdicts(reports: Iterable[pytest.TestReport]) -> set[str]:
    """Return the modules with a test that did not run, as its verdict was stored."""
    return {
        durations.module(report.nodeid)
        for report in reports
        if ("verdict", verdicts.KNOWN) in report.user_properties
    }


def _meaning(reports: Sequence[pytest.TestReport], known: KnownModules | None) -> Iterator[str]:
    """Yield lines that say what a green run means: the verdicts of today, and what was sampled."""
    for name in known.contradictions() if known else ():
        yield f"{name}: failed, though it passed before, with these cases or others"
    origins = known.origins() if known else []
    origins += [
        (durations.module(report.nodeid).partition("/")[0], origin)
        for report in reports
        for origin in _told([report], "verdict")
    ]
    if origins:
        yield verdicts.summary(origins)
    if settings.get_current_profile_name() == FULL:
        yield rotation.summary(_told(reports, rotation.SAMPLED))
