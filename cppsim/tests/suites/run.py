"""Run test suites of other projects in Amaranth's simulator and under cppsim, test by test.

``PYTHONPATH=cppsim/tests python -m suites.run CLONES --python PYTHON`` takes a folder of clones and
a Python that has the packages of ``--requires``. A suite runs once without cppsim, then in mode
``always`` with an empty cache (cold) and with the full one (warm). The table has the processor
seconds of all processes, and the ratio to Amaranth's simulator. The exit status is 1 if a test's
outcome differs.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suites.measure import Run, Runner
from suites.suite import FILE, NoSuite, Suite, chosen, read

PYSIM = "pysim"
MODES = {"cold": "always", "warm": "always"}
"""The mode of each run under cppsim. ``warm`` has the cache of ``cold``."""

_TITLES = ("suite", "tests", "passed", "differ", PYSIM, *MODES)
_WIDTHS = (16, 6, 7, 7, 9, *(16 for _ in MODES))


@dataclass(frozen=True)
class Comparison:
    """All runs of a suite, by name: ``pysim`` and those of `MODES`.

    ``complete`` is false if a run ended without results: it is not in ``runs``.
    """

    suite: Suite
    runs: Mapping[str, Run]
    complete: bool = True

    @property
    def tests(self) -> list[str]:
        """Names of tests that any run has, in order."""
        return list(dict.fromkeys(name for run in self.runs.values() for name in run.outcomes))

    @property
    def passed(self) -> int:
        """Number of tests that pass in all runs."""
        return sum(all(kind == "passed" for kind in self._kinds(test)) for test in self.tests)

    @property
    def differing(self) -> list[str]:
        """Names of tests whose outcome is not the same in all runs."""
        return [test for test in self.tests if len(set(self._kinds(test))) > 1]

    def _kinds(self, test: str) -> list[str]:
        return [
            run.outcomes[test].kind if test in run.outcomes else "" for run in self.runs.values()
        ]

    def row(self) -> str:
        """Return the line of the table."""
        base = self.runs[PYSIM].seconds
        cells = [self.suite.name, len(self.tests), self.passed, len(self.differing), f"{base:.1f}"]
        for name in MODES:
            run = self.runs.get(name)
            cells.append(f"{run.seconds:.1f} ({run.seconds / base:.2f})" if run else "")
        return line(cells)

    def details(self) -> str:
        """Return the differences with all outcomes, and what cppsim's summaries say."""
        lines = [
            f"{self.suite.name}, {name}: {text}"
            for name, run in self.runs.items()
            for text in run.summary
        ]
        base = self.runs[PYSIM].outcomes
        lines += [
            f"{self.suite.name}, in all runs: {test}: {outcome}"
            for test, outcome in base.items()
            if outcome.kind != "passed" and test not in self.differing
        ]
        for test in self.differing:
            lines.append(f"{self.suite.name}, DIFFERS: {test}")
            lines += [f"  {name:6}{run.outcomes.get(test, '')}" for name, run in self.runs.items()]
        return "\n".join(lines)


def line(cells: Sequence[object]) -> str:
    """Return ``cells`` as a line of the table, the first to the left, others to the right."""
    first, *others = zip(cells, _WIDTHS, strict=True)
    return f"{first[0]:{first[1]}}" + "".join(f"{x!s:>{width}}" for x, width in others)


def compare(runner: Runner, names: Sequence[str]) -> Comparison:
    """Run a suite without cppsim, and under cppsim for each of ``names``, keys of `MODES`."""
    # Python compiles modules once, outside what is measured.
    runner.run(["--collect-only", "-q", "--cppsim=off"])
    runs = {PYSIM: runner.run()}
    with tempfile.TemporaryDirectory() as caches:
        for name in names:
            cache = Path(caches, MODES[name])
            try:
                runs[name] = runner.run([f"--cppsim={MODES[name]}"], cache)
            except NoSuite as error:
                print(f"{name}: {error}", file=sys.stderr)
    return Comparison(runner.suite, runs, complete=len(runs) == len(names) + 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="suites", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("clones", type=Path, help="a folder with a clone of each project")
    parser.add_argument("suites", nargs="*", help="names of suites (default: all)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="runs the tests")
    parser.add_argument("--file", type=Path, default=FILE, help="default: suites.toml")
    parser.add_argument(
        "--mode", choices=sorted(set(MODES.values())), help="only this one of cppsim's"
    )
    parser.add_argument("--limit", type=int, default=1800, help="seconds for a run (default: 1800)")
    parser.add_argument("--requires", action="store_true", help="only list packages for pip")
    return parser


def _runner(used: Sequence[Suite], options: argparse.Namespace, folder: Path) -> Runner:
    """Export the first of ``used``, and the others, which it imports. Raises ``NoSuite``."""
    exported = [each.export(options.clones, folder / each.name) for each in used]
    path = [top / name for each, top in zip(used, exported, strict=True) for name in each.path]
    return Runner(used[0], exported[0], path, options.python, options.limit)


def main(words: Sequence[str] | None = None) -> int:
    """Run the program. Return 1 if a test differs, 2 if a suite could not be run."""
    options = _parser().parse_intermixed_args(words)
    try:
        known = read(options.file)
        suites = list(chosen(known, options.suites))
    except NoSuite as error:
        print(error, file=sys.stderr)
        return 2
    if options.requires:
        used = [each for suite in suites for each in chosen(known, [suite.name, *suite.uses])]
        print(
            *sorted({"pytest", *(package for each in used for package in each.requires)}), sep="\n"
        )
        return 0
    names = [name for name, mode in MODES.items() if options.mode in (None, mode)]
    compared, status = list[Comparison](), 0
    print(line(_TITLES), flush=True)
    for suite in suites:
        with tempfile.TemporaryDirectory() as folder:
            try:
                used = list(chosen(known, [suite.name, *suite.uses]))
                compared.append(compare(_runner(used, options, Path(folder)), names))
            except NoSuite as error:
                print(error, file=sys.stderr)
                status = 2
            else:
                print(compared[-1].row(), flush=True)
    print(*(each.details() for each in compared), sep="\n")
    if status or not all(each.complete for each in compared):
        return 2
    return int(any(each.differing for each in compared))


if __name__ == "__main__":
    sys.exit(main())
