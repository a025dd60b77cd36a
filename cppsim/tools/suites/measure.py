"""One run of a suite: the outcome of each test, and the processor seconds of all processes."""

import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from suites.suite import NoSuite, Suite

SOURCES = Path(__file__).parents[2] / "src"
PROCESSOR = Path(__file__).with_name("processor.py")


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
