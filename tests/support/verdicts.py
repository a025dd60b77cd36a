"""Verdicts of slow checks, stored by the content of circuits and packages. No tests here.

A check that passed is not run again while its key is the same: the key is the SHA-256 of the inputs
of the check. Only a pass is stored. One check in ten, chosen by the commit, is run anyway, and of
checks over ten seconds one in as many as one has seconds: each costs a run about a second. A stored
verdict that it contradicts is an error. An entry that is missing, damaged or of another form means
that the check runs.

Proofs are stored by their circuits. A test with the mark ``judges(*packages)`` is stored by its
name and tier, its module and all files of tests that this imports, the sources of the packages, the
versions of the tools, and the variables that tests obey. `support.known` stores whole modules.

    python -m support.verdicts

forgets all verdicts.
"""

import contextlib
import functools
import hashlib
import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf
from pathlib import Path

import pytest
from hypothesis import settings

from bitlane_sim.builds import CACHE
from cppsim.build import CacheWarning, remove
from cppsim.errors import SimulationError

from .durations import PROJECT
from .inputs import Inputs, variables, versions
from .rotation import commit, lot

KIND = "verdicts"
"""The folder of verdicts in bitlane's cache, which has a limit."""

AGAIN = 10
"""One in this many stored verdicts is checked again, of checks of at most as many seconds."""

KNOWN, NOW, CONFIRMED = "known", "now", "confirmed"
"""Origins of a verdict: the cache, a check of today, both."""

MARK = "judges"
"""Mark of a test whose verdict is stored; its arguments name the packages that take part.

A module has the packages of all its marks.
"""

AT_THE_PINS = pytest.mark.judges(
    "bitlane.api",
    "bitlane.arguments",
    "bitlane.driver",
    "bitlane.errors",
    "bitlane.links",
    "bitlane.lowering",
    "bitlane.streaming",
    "bitlane.validate",
    "bitlane_boards",
    "bitlane_rtl",
    "bitlane_sim.builds",
    "cppsim",
    "support.board",
    "support.boards",
)
"""The mark of tests that let the driver talk to a whole board at its pins."""

_VARIABLES = variables()
"""Those that the run began with: fixtures set others."""

_BEGAN = time.time_ns()
"""The time at which this process has imported no test module yet."""

_FILE = "verdict.json"

_PASSED = pytest.StashKey[tuple[str, "Passed"]]()
"""Key and verdict of a marked test that has passed so far."""


@dataclass(frozen=True)
class Passed:
    """The verdict of a check that passed, as it is stored.

    Attributes
    ----------
    text : str
        What it said; "" if nothing.
    seconds : float
        How long it took.
    """

    text: str
    seconds: float


class Verdicts:
    """The verdicts of one test; ``report`` is pytest's ``record_property``.

    ``keep`` stores a verdict by its key; the default is `store`.
    """

    def __init__(
        self,
        report: Callable[[str, object], None],
        keep: Callable[[str, Passed], None] | None = None,
    ) -> None:
        self._report = report
        self._keep = keep or store

    def passes(self, parts: Sequence[str], check: Callable[[], str]) -> str:
        """Return what ``check`` said of ``parts`` when it passed, with its seconds; "" if nothing.

        ``parts``: all inputs of the check, in an order that does not change. ``check`` raises if it
        does not pass; nothing is stored then.
        """
        key = hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()
        known = stored(key)
        if known is not None and not is_checked_again(key, known.seconds):
            self._report("verdict", KNOWN)
            return known.text and f"{known.text} (known)"
        start = time.monotonic()
        try:
            text = check()
        except BaseException as error:
            if known is not None:
                remove_stored(key)
                error.add_note(f"verdict {key} of the cache: passed before, with the same inputs")
            raise
        seconds = time.monotonic() - start
        text = text and f"{text}, {seconds:.1f} s"
        self._keep(key, Passed(text, seconds))
        self._report("verdict", NOW if known is None else CONFIRMED)
        return text


def run_marked(item: pytest.Function) -> bool:
    """Run a test with the mark `MARK` unless it is known to pass; return whether it has the mark.

    The lines that the test reports are stored with its verdict, by `settle`.
    """
    packages = _packages(item)
    if not packages:
        return False

    def check() -> str:
        names = item._fixtureinfo.argnames
        item.obj(**{name: item.funcargs[name] for name in names})
        lines = [str(text) for name, text in item.user_properties if name == "report"]
        item.user_properties[:] = [each for each in item.user_properties if each[0] != "report"]
        return "; ".join(lines)

    def report(name: str, value: object) -> None:
        item.user_properties.append((name, value))

    def keep(key: str, passed: Passed) -> None:
        item.stash[_PASSED] = (key, passed)

    tier = settings.get_current_profile_name()
    own = [item.nodeid, tier, _inputs().of_tests(item.path), *_versions(), *_VARIABLES]
    parts = [*own, *(f"{name} {digest(name)}" for name in packages)]
    if text := Verdicts(report, keep).passes(parts, check):
        report("report", text)
    return True


def settle(item: pytest.Item, report: pytest.TestReport) -> None:
    """Store the verdict of a marked test after its last phase, unless a phase did not pass.

    A test whose function returns may fail still: by a warning, or when its fixtures are closed. If
    a source has changed since the run began, the test may have run with the old one.
    """
    passed = item.stash.get(_PASSED, None)
    if passed and not report.passed:
        del item.stash[_PASSED]
    elif passed and report.when == "teardown" and _sources_are_unchanged(item):
        store(*passed)


def _packages(item: pytest.Item) -> list[str]:
    return sorted({name for mark in item.iter_markers(MARK) for name in mark.args})


def _sources_are_unchanged(item: pytest.Item) -> bool:
    files = [path for name in _packages(item) for path, _ in _sources(name)]
    files += _inputs().files_of_tests(item.path)
    # Unlike the time of a file's content, no program sets this time back.
    return all(path.stat().st_ctime_ns < _BEGAN for path in files)


@functools.cache
def _inputs() -> Inputs:
    return Inputs(PROJECT)


_versions = functools.cache(versions)


@functools.cache
def digest(package: str) -> str:
    """Return the SHA-256 of all source files of ``package``, a module or a package with its parts.

    Raises ``ModuleNotFoundError`` if there is none.
    """
    total = hashlib.sha256()
    for path, name in sorted(_sources(package)):
        content = path.read_bytes()
        total.update(f"{name} {len(content)}\n".encode() + content)
    return total.hexdigest()


def _sources(package: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of ``package``, and their names within it."""
    spec = find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"no module named {package!r}", name=package)
    if spec.submodule_search_locations is None:
        yield Path(str(spec.origin)), ""
    for root in spec.submodule_search_locations or []:
        for path in Path(root).rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                yield path, str(path.relative_to(root))


def summary(origins: Iterable[tuple[str, str]]) -> str:
    """Return a line that says how many verdicts of each folder are of today, and how many known."""
    by_folder = defaultdict[str, list[str]](list)
    for folder, origin in origins:
        by_folder[folder].append(origin)
    parts = []
    for folder, found in sorted(by_folder.items()):
        now, confirmed, known = (found.count(each) for each in (NOW, CONFIRMED, KNOWN))
        again = f", {confirmed} of them again" if confirmed else ""
        parts.append(f"{folder} {now + confirmed} checked now{again}, {known} known")
    return f"verdicts: {'; '.join(parts)}"


def forget() -> int:
    """Remove all verdicts from the cache; return their number."""
    found = [entry.folder for entry in CACHE.entries() if entry.folder.parent.name == KIND]
    for folder in found:
        remove(folder)
    return len(found)


def is_checked_again(key: str, seconds: float) -> bool:
    """Return whether the commit chooses the check of ``key`` to run in spite of its verdict."""
    return lot(key, commit()) % max(AGAIN, round(seconds)) == 0


def stored(key: str) -> Passed | None:
    """Return the verdict of ``key``, None if there is none that can be read."""
    try:
        with _without_warnings():
            folder = CACHE.known(KIND, key)
        if folder is None:
            return None
        entry = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        text, seconds, of = entry["passed"], float(entry["seconds"]), entry["key"]
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    good = of == key and isinstance(text, str) and 0 <= seconds < inf
    return Passed(text, seconds) if good else None


def remove_stored(key: str) -> None:
    """Remove the entry of ``key``, which a check of today contradicts or nobody can read."""
    folder = CACHE.known(KIND, key)
    if folder is not None:
        # The failure of the check counts, whether its entry can be removed or not.
        with contextlib.suppress(OSError):
            remove(folder)


def store(key: str, passed: Passed) -> None:
    """Store ``passed`` of the check of ``key``; a verdict that can be read stays as it is."""

    def fill(folder: Path) -> None:
        entry = {"key": key, "passed": passed.text, "seconds": round(passed.seconds, 1)}
        (folder / _FILE).write_text(json.dumps(entry), encoding="utf-8")

    # The check has run, so neither a damaged entry nor a full disk is an error of the test.
    with _without_warnings(), contextlib.suppress(OSError):
        # The cache itself keeps an entry of another form, which is not damaged.
        if stored(key) is None:
            remove_stored(key)
        CACHE.cached(KIND, key, fill)


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Use a temporary folder in silence where there is no cache, and replace damaged entries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        yield


def main() -> int:
    """Run the program. Return 1 if the cache cannot be read or changed."""
    try:
        print(f"{forget()} verdicts forgotten", file=sys.stderr)
    except (OSError, SimulationError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
