"""Suites of other projects, `suites.toml`: clean copies of their files, and runs of these.

A run has the outcome of each test, and the processor seconds of all processes.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

FILE = Path(__file__).with_name("suites.toml")
SOURCES = Path(__file__).parents[2] / "src"
PROCESSOR = Path(__file__).with_name("processor.py")

GITHUB = "https://github.com/"
"""The beginning of the URL of a ``repository``."""


class NoSuite(Exception):
    """A suite cannot be run: the message names it, and the cure."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """An entry of `suites.toml`, which describes the fields."""

    name: str
    repository: str
    commit: str
    requires: list[str]
    folder: str = "."
    path: list[str] = field(default_factory=lambda: ["."])
    tests: list[str] = field(default_factory=lambda: ["tests"])
    clone: str = ""
    files: list[str] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    distribution: str = ""
    group: str = "all"

    def clone_from(self, base: str, clones: Path) -> None:
        """Clone ``base`` and ``repository`` at ``commit`` into ``clones``, unless it is there.

        Raises ``NoSuite`` if git fails.
        """
        clone = self._clone(clones)
        if clone.exists():
            return
        self._git(clones, "init", "-q", clone.name)
        try:
            self._git(clone, "fetch", "-q", "--depth=1", base + self.repository, self.commit)
        except NoSuite:
            shutil.rmtree(clone)
            raise

    def export(self, clones: Path, target: Path) -> Path:
        """Write the files of ``folder`` at ``commit`` to ``target``; return the folder there.

        Whatever a clone has checked out or changed is left out. A folder that git does not know is
        copied as it is. Raises ``NoSuite`` if git cannot read the files.
        """
        target.mkdir(parents=True)
        clone = self._clone(clones)
        if clone.is_dir() and not any((clone / name).exists() for name in (".git", "HEAD")):
            shutil.copytree(clone, target, symlinks=True, dirs_exist_ok=True)
        else:
            archive = target / "files.tar"
            files = self.files or [self.folder]
            self._git(clone, "archive", "-o", str(archive), self.commit, *files)
            subprocess.run(["tar", "-xf", str(archive), "-C", str(target)], check=True)
            archive.unlink()
        folder = target / self.folder
        if self.distribution:
            installed = folder / f"{self.distribution}-0.dist-info"
            installed.mkdir()
            name = f"Metadata-Version: 2.1\nName: {self.distribution}\nVersion: 0\n"
            (installed / "METADATA").write_text(name)
        return folder

    def _clone(self, clones: Path) -> Path:
        return clones / (self.clone or self.name)

    def _git(self, folder: Path, *words: str) -> None:
        command = ["git", "-C", str(folder), *words]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise NoSuite(
                f"{self.name}: {ran.stderr.strip()}; "
                f"expected a clone of {self.repository} with {self.commit[:12]}"
            )


def read(path: Path = FILE) -> list[Suite]:
    """Return all suites of a file. Raises ``TypeError`` for an entry with wrong fields."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Suite(name=name, **entry) for name, entry in tables.items()]


def chosen(suites: Sequence[Suite], names: Sequence[str]) -> Iterator[Suite]:
    """Yield the suites of ``names``, all without names. Raises ``NoSuite`` for an unknown one."""
    known = {suite.name: suite for suite in suites}
    for name in names or known:
        if name not in known:
            raise NoSuite(f"{name}: not a suite; expected one of {', '.join(known)}")
        yield known[name]


@dataclass(frozen=True)
class Outcome:
    """``passed``, ``failed``, ``error`` or ``skipped``; the first line of the reason."""

    kind: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


@dataclass(frozen=True)
class Run:
    """The tests by name, the processor seconds, and the lines of cppsim's summary."""

    outcomes: dict[str, Outcome]
    seconds: float
    summary: list[str]

    def with_round(self, other: "Run") -> "Run":
        """Return both rounds as one: the fewer seconds, and for each test what did not pass."""
        outcomes = {
            name: min(
                (run.outcomes.get(name, Outcome("missing")) for run in (self, other)),
                key=lambda outcome: outcome.kind == "passed",
            )
            for name in self.outcomes | other.outcomes
        }
        return Run(outcomes, min(self.seconds, other.seconds), self.summary)


@dataclass(frozen=True)
class Runner:
    """Runs tests of ``suite``, exported to ``folder``, in the environment of ``python``.

    ``path`` are the folders that the tests import from. A run ends after ``limit`` seconds. It
    stays on the processor ``core``, unless that is None.
    """

    suite: Suite
    folder: Path
    path: list[Path]
    python: Path
    limit: int
    core: int | None = None

    def run(self, options: Sequence[str] = (), cache: Path | None = None) -> Run:
        """Run the suite with ``options`` of pytest added, and with cppsim's ``cache``.

        Raises ``NoSuite`` if it ends without results.
        """
        with tempfile.TemporaryDirectory() as name:
            results, seconds = Path(name, "results.xml"), Path(name, "seconds")
            command = [sys.executable, PROCESSOR, seconds, self.limit, self.python, "-m", "pytest"]
            if self.core is not None:
                command = ["taskset", "--cpu-list", self.core, *command]
            command += ["-p", "no:cacheprovider", f"--junitxml={results}", *options]
            ran = subprocess.run(
                [str(word) for word in (*command, *self.suite.tests)],
                cwd=self.folder,
                env=self._environment(cache),
                capture_output=True,
                text=True,
                check=False,
            )
            if not (seconds.exists() and results.exists()):
                end = (ran.stdout + ran.stderr).strip().splitlines()[-5:]
                raise NoSuite("\n".join([f"{self.suite.name}: no results", *end]))
            outcomes = _outcomes(ElementTree.parse(results))
            return Run(outcomes, float(seconds.read_text()), _summary(ran.stdout))

    def _environment(self, cache: Path | None) -> dict[str, str]:
        path = [str(each) for each in (*self.path, SOURCES)]
        left_out = ("CPPSIM", "PYTHONDONTWRITEBYTECODE")
        own = {name: text for name, text in os.environ.items() if not name.startswith(left_out)}
        # Sets are iterated, and names printed, alike in all runs.
        own |= {"PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "0", "COLUMNS": "200"}
        own["PYTHONPYCACHEPREFIX"] = str(self.folder / ".bytecode")
        return own | ({"CPPSIM_CACHE": str(cache)} if cache else {})


def _outcomes(results: "ElementTree.ElementTree[ElementTree.Element[str]]") -> dict[str, Outcome]:
    """Return tests by name. A name may be there twice, as subtests are: ``#2`` is added."""
    outcomes, times = dict[str, Outcome](), defaultdict[str, int](int)
    for case in results.iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        times[name] += 1
        if times[name] > 1:
            name = f"{name}#{times[name]}"
        outcomes[name] = Outcome("passed")
        for kind, word in (("skipped", "skipped"), ("failure", "failed"), ("error", "error")):
            found = case.find(kind)
            if found is not None:
                lines = (found.get("message") or "").splitlines()
                outcomes[name] = Outcome(word, lines[0] if lines else "")
    return outcomes


def _summary(output: str) -> list[str]:
    found = re.search(r"^=+ cppsim, mode \w+ =+\n(.*?)^=", output, re.MULTILINE | re.DOTALL)
    return found[1].splitlines() if found else []
