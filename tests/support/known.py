"""Test modules that passed before, and whose inputs are unchanged since then. No tests here.

``pytest --except-known`` leaves out each module that passed in an earlier such run with the same
inputs (`support.inputs`), tier and options. The commit selects some of these modules, which run
again (`support.verdicts`). ``make forget`` removes their verdicts, too.

All modules run if git is missing or ignores the project.

The end of a run stores the verdict of each module of which all tests have passed, unless the run
was interrupted or an input of the module has changed meanwhile. If the commit selects a part of the
module's cases, these are enough. The verdict of a module that fails is removed.
"""

import hashlib
import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bitlane_sim.builds import CACHE
from cppsim.errors import SimulationError

from . import verdicts
from .durations import PROJECT, TREES, module
from .inputs import Inputs
from .rotation import REPLAY
from .seeds import FACTOR, SINGLE

CHOOSING = (REPLAY, FACTOR, SINGLE, "RECOMPUTE")
"""Environment variables that choose other cases: with them no verdict is read or stored."""

ANY = {
    *("color", "dist", "file_or_dir", "maxprocesses", "no_header", "numprocesses", "quiet", "tx"),
    *("except_passed", "store_durations", "store_passed", "verbose"),
}
"""Options of pytest that change no test; the file of one is read by `passed_before`."""

_OF_WORKERS = "known_modules"


class KnownModules:
    """A plugin of pytest that leaves out `left_out`, modules by `durations.module`.

    Raises ``pytest.UsageError`` for a part of a module.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.left_out, self._again = set[str](), set[str]()
        self._keys, self._failed = dict[str, str](), dict[str, bool]()
        self._seconds = defaultdict[str, float](float)
        of_worker = getattr(config, "workerinput", None)
        if of_worker is not None:
            self.left_out = set(of_worker[_OF_WORKERS])
        elif not any(name in os.environ for name in CHOOSING):
            _expect_a_limit()
            self._choice = _choice(config)
            self._keys = _keys(config, self._choice)
            for name, key in self._keys.items():
                if passed := verdicts.stored(key):
                    again = verdicts.is_checked_again(key, passed.seconds)
                    (self._again if again else self.left_out).add(name)
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker, which must not choose by itself: another run may store verdicts."""
        node.workerinput[_OF_WORKERS] = sorted(self.left_out)

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        left = [item for item in items if module(item.nodeid) in self.left_out]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if module(item.nodeid) not in self.left_out]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = module(report.nodeid)
        self._failed[name] = not report.passed or self._failed.get(name, False)
        self._seconds[name] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store what passed, in the process that has all reports; a run of nothing new passes."""
        for name in self.contradictions():
            verdicts.remove_stored(self._keys[name])
        whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self.passed_all_before(exitstatus):
            session.exitstatus = pytest.ExitCode.OK
        if self._keys and whole and not session.shouldstop and not session.shouldfail:
            now = _keys(self._config, self._choice)
            for name, failed in self._failed.items():
                if not failed and name in now and now[name] == self._keys.get(name):
                    verdicts.store(now[name], verdicts.Passed("", self._seconds[name]))

    def passed_all_before(self, exitstatus: int) -> bool:
        """Return whether no test ran because the selected tests passed before."""
        if exitstatus != pytest.ExitCode.NO_TESTS_COLLECTED:
            return False
        selected = {_name(path) for path in _modules(self._config.args)}
        recorded = set(map(module, passed_before(self._config)))
        return not selected.isdisjoint(self.left_out | recorded)

    def origins(self) -> list[tuple[str, str]]:
        """Return ``("modules", origin)`` for each module that ran or was left out."""
        ran = [verdicts.CONFIRMED if name in self._again else verdicts.NOW for name in self._failed]
        return [("modules", each) for each in (*ran, *(verdicts.KNOWN for _ in self.left_out))]

    def contradictions(self) -> list[str]:
        """Return the modules that failed, though they had passed with the same inputs."""
        return sorted(name for name in self._again if self._failed.get(name))


def files(config: pytest.Config) -> str:
    """Return the SHA-256 of the project's files but those that runs write; "" without git."""
    options = map(config.getoption, ("--store-passed", "--except-passed", "--store-durations"))
    written = {path.absolute() for path in options if path}
    try:
        return Inputs(config.rootpath).of_everything(written)
    except (OSError, subprocess.CalledProcessError):
        return ""


def expect_unchanged(config: pytest.Config) -> None:
    """Raise ``pytest.UsageError`` if ``--except-passed`` names a record of other files."""
    path: Path | None = config.getoption("--except-passed")
    if path and json.loads(path.read_text(encoding="utf-8"))["files"] != files(config):
        told = f"--except-passed: {path}: files of the project have changed since then"
        raise pytest.UsageError(f"{told}; `make test RECORD=FOLDER` writes it")


def passed_before(config: pytest.Config) -> set[str]:
    """Return the tests that ``--except-passed`` leaves out. Raises ``pytest.UsageError``."""
    path: Path | None = config.getoption("--except-passed")
    try:
        return set(json.loads(path.read_text(encoding="utf-8"))["passed"]) if path else set()
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        told = f"--except-passed: {path}: {reason}; `make test RECORD=FOLDER` writes it"
        raise pytest.UsageError(told) from None


def _expect_a_limit() -> None:
    """Raise ``pytest.UsageError`` now for a limit of the cache that the end of the run needs."""
    try:
        CACHE.limit()
    except SimulationError as error:
        raise pytest.UsageError(str(error)) from None


def _choice(config: pytest.Config) -> str:
    """Return the options with which the tests run."""
    options = config.option
    if options.keyword or any("::" in each for each in config.args):
        raise pytest.UsageError(
            "--except-known: a part of a module; leave out -k and names of tests"
        )
    chosen = {name: repr(value) for name, value in vars(options).items() if name not in ANY}
    return json.dumps([*sorted(chosen.items()), bool(options.except_passed)])


def _keys(config: pytest.Config, choice: str) -> dict[str, str]:
    """Return the key of each test module below the folders of the command line."""
    inputs, left_out = Inputs(PROJECT), defaultdict[str, list[str]](list)
    for nodeid in sorted(passed_before(config)):
        left_out[module(nodeid)].append(nodeid)
    try:
        paths = list(filter(inputs.knows, _modules(config.args)))
    except (OSError, subprocess.CalledProcessError):
        return {}
    found = dict[str, str]()
    for path in paths:
        name = _name(path)
        try:
            found[name] = _key([name, inputs.digest(path), choice, *left_out[name]])
        except (OSError, SyntaxError):
            continue  # pytest reports the file that cannot be read
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
    return found


def _modules(args: Sequence[str]) -> list[Path]:
    found = set[Path]()
    for place in (Path(each).resolve() for each in args):
        found |= {place} if place.is_file() else set(place.rglob("test_*.py"))
    trees = [PROJECT / tree for tree in TREES]
    return sorted(path for path in found if any(map(path.is_relative_to, trees)))


def _name(path: Path) -> str:
    return module(path.relative_to(PROJECT).as_posix())


def _key(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
