"""A temporary copy of the project, in which changes are made and tests run."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mutants.changes import Change, apply
from mutants.packages import Package

_IMPORTED_FROM = ("rtl", "sim", "host", "boards", "tools", "tests")
_PATH = (*_IMPORTED_FROM, "cppsim/src", "cppsim/tools", "cppsim/tests")
FOLDERS = (*_IMPORTED_FROM, "cppsim", "docs", "examples")
_FILES = ("pyproject.toml", "README.md")

_PASSED = 0
_NO_TEST = 5
_MISUSED = (3, 4)
"""Exit codes of pytest: internal error, usage error. Also if a change breaks ``conftest.py``."""

TIERS = {
    "full": ("--hypothesis-profile", "full", "-m", "not deep"),
    "quick": ("--hypothesis-profile", "quick", "-m", "not slow and not deep"),
}
"""Options of pytest for each tier."""

_TEST_SECONDS = {"full": 180, "quick": 60}
"""Time limit of a test in each tier, in seconds: a circuit that hangs fails the test."""

_PLUGINS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "mutants.plugin")
_IMPORTED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Option for libraries that `forks` has imported before pytest could rewrite them."""

_OPTIONS = ("-x", "-q", "--tb=no", "-rfE", *_PLUGINS, *_IMPORTED)

_TOOLS = str(Path(__file__).parents[1])


class NoAnswer(Exception):
    """The tests or the netlist builder did not run at all."""


class Workplace:
    """A copy of the project that holds one change of ``package`` at a time.

    ``tier`` names the tests to run, ``deadline`` is in seconds for all tests of a change.
    """

    def __init__(
        self, project: Path, package: Package, deadline: float, tier: str = "full"
    ) -> None:
        self.package = package
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._deadline = deadline
        self._tier = tier
        for name in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(project / name, self._folder / name, ignore=ignored)
        for name in _FILES:
            shutil.copy(project / name, self._folder)
        path = os.pathsep.join([*(str(self._folder / name) for name in _PATH), _TOOLS])
        self._passing: set[tuple[str, ...]] = set()
        self._cache = self._folder / "cache"
        self._warm = self._folder / "warm"
        self._warm.mkdir()
        self._netlists = self._folder / "netlists.json"
        caches = dict.fromkeys(("BITLANE_CACHE", "CPPSIM_CACHE"), str(self._cache))
        self._forks = subprocess.Popen(
            [sys.executable, "-m", "mutants.forks"],
            cwd=self._folder,
            # An empty string lets Python and pytest store what they compile.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": path, **caches},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._forks.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """Apply ``change`` to the copy inside a ``with`` block."""
        path = self._folder / self.package.folder / change.file
        before = path.read_text(encoding="utf-8")
        if not self.package.is_cold(change.file):
            shutil.copytree(self._warm, self._cache, dirs_exist_ok=True)
        self._write(path, apply(change, before))
        try:
            yield
        finally:
            self._write(path, before)
            self._empty_cache()

    def warm_up(self, file: str, tests: Sequence[str]) -> None:
        """Fill the cache for changes of ``file``, if they have one, by the unchanged ``tests``.

        Raises ``NoAnswer`` if one of ``tests`` fails.
        """
        asked = tuple(tests)
        if self.package.shared or self.package.is_cold(file) or asked in self._passing:
            return
        self._remove_cache()
        self._warm.rename(self._cache)
        try:
            if by := self.fails(tests):
                raise NoAnswer(f"fails without any change: {by}")
            self._passing.add(asked)
        finally:
            self._forget_verdicts()
            self._cache.mkdir(exist_ok=True)
            self._cache.rename(self._warm)

    def _empty_cache(self) -> None:
        if self.package.shared:
            self._forget_verdicts()
        else:
            self._remove_cache()

    def _remove_cache(self) -> None:
        # A process that a test left behind may write while the folder is removed.
        with suppress(FileNotFoundError):
            aside = self._cache.rename(Path(tempfile.mkdtemp(dir=self._folder)) / "cache")
            shutil.rmtree(aside, ignore_errors=True)

    def _forget_verdicts(self) -> None:
        # The key of a stored verdict names packages that are judged; a change may be in another.
        shutil.rmtree(self._cache / "verdicts", ignore_errors=True)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Python checks only a source's time, in seconds, and its size; a change may keep both.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def fails(self, tests: Sequence[str]) -> str:
        """Run ``tests``; return the first one that fails, or an empty string if all pass.

        If pytest names no test, return the reason: a deadline or an exit code, as where a change
        breaks what all tests import. Raises ``NoAnswer`` if one of ``tests`` does not exist.
        """
        options = (*_OPTIONS, *TIERS[self._tier], f"--timeout={_TEST_SECONDS[self._tier]}")
        code, output = self._run("pytest", *options, *tests)
        # A change may end the process with 0 before pytest has run its tests.
        passed = code == _PASSED and re.search(r"^\d+ \w+.* in [\d.]+s", output, flags=re.M)
        if passed or (code == _NO_TEST and self._tier != "full"):
            return ""
        there = all((self._folder / test.partition("::")[0]).exists() for test in tests)
        if code == _NO_TEST or (code in _MISUSED and not there):
            raise NoAnswer(output)
        # The text after the name is the reason; names of tests may contain spaces.
        found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, flags=re.M)
        return found[1] if found else "deadline" if code is None else f"exit code {code}"

    def pass_unchanged(self, tests: Sequence[str], by: str) -> bool:
        """Return whether the test ``by``, which `fails` returned, passes without a change.

        If ``by`` is not a test but a crash or a deadline, run all of ``tests``.
        """
        asked = (by,) if "::" in by else tuple(tests)
        if asked not in self._passing and not self.fails(asked):
            self._passing.add(asked)
        return asked in self._passing

    def remember_netlists(self) -> None:
        """Store the netlists of the unchanged circuits."""
        code, output = self._run("mutants.netlists")
        if code != 0:
            raise NoAnswer(output)
        self._netlists.write_text(json.dumps(json.loads(output)), encoding="utf-8")

    def has_same_netlists(self, file: str) -> bool:
        """Return whether all circuits with ``file`` still have their stored netlists."""
        code, _ = self._run("mutants.netlists", str(self._netlists), file)
        return code == 0

    def _run(self, *command: str) -> tuple[int | None, str]:
        """Run a Python module. Return its exit code, None after the deadline, and its output.

        Processes that it has started and left behind are killed.
        """
        asked, answered = self._forks.stdin, self._forks.stdout
        assert asked is not None
        assert answered is not None
        with suppress(BrokenPipeError):
            print(json.dumps([self._deadline, *command]), file=asked, flush=True)
        if not (line := answered.readline()):
            raise NoAnswer(f"the process that runs tests has ended: {self._forks.wait()}")
        code, output = json.loads(line)
        return code, output
