"""Run test suites of other projects in Amaranth's simulator and under cppsim, test by test.

``python cppsim/benchmarks/suites.py CLONES --python PYTHON`` takes a folder of clones, or of plain
copies, and a Python that has the packages of ``--requires``; it clones the projects that the folder
lacks. A suite runs without cppsim, then in mode ``always`` with an empty cache (cold) and with the
full one (warm). The table has the processor seconds of all processes, and the ratio to Amaranth's
simulator. The exit status is 1 if a test's outcome differs.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from time import monotonic

from suites.suite import FILE, GITHUB, NoSuite, Run, Runner, Suite, chosen, read

PYSIM = "pysim"
MODES = {"cold": "always", "warm": "always"}
"""The mode of each run under cppsim. ``warm`` has the cache of ``cold``."""

PLUGIN = ("-p", "no:cppsim", "-p", "cppsim.pytest_plugin")
"""Options of pytest that load the plugin from the sources; an installed cppsim is left out."""

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
        return row(self.suite.name, [self])

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


def row(name: str, compared: Sequence[Comparison]) -> str:
    """Return the sums of ``compared`` as a line of the table; a mode that one lacks is empty."""
    counts = [
        sum(len(tests) for tests in column)
        for column in zip(*((each.tests, each.differing) for each in compared), strict=True)
    ]
    base = sum(each.runs[PYSIM].seconds for each in compared)
    cells = [name, counts[0], sum(each.passed for each in compared), counts[1], f"{base:.1f}"]
    for mode in MODES:
        runs = [each.runs.get(mode) for each in compared]
        seconds = sum(run.seconds for run in runs if run)
        cells.append(f"{seconds:.1f} ({seconds / base:.2f})" if all(runs) else "")
    return line(cells)


def sums(compared: Sequence[Comparison]) -> list[str]:
    """Return a line for each group of which there are two suites or more."""
    groups = dict[str, list[Comparison]]()
    for each in compared:
        groups.setdefault(each.suite.group, []).append(each)
    return [row(name, members) for name, members in groups.items() if len(members) > 1]


def line(cells: Sequence[object]) -> str:
    """Return ``cells`` as a line of the table, the first to the left, others to the right."""
    first, *others = zip(cells, _WIDTHS, strict=True)
    return f"{first[0]:{first[1]}}" + "".join(f"{x!s:>{width}}" for x, width in others)


def compare(runner: Runner, seconds: float = 0) -> Comparison:
    """Run a suite without cppsim, and under cppsim in each of `MODES`.

    Once, and again until ``seconds`` have passed: the best of each counts.
    """
    # Python compiles modules once, outside what is measured.
    runner.run(["--collect-only", "-q", *PLUGIN, "--cppsim=off"])
    end = monotonic() + seconds
    runs = _round(runner)
    while monotonic() < end:
        again = _round(runner)
        runs = {name: run.with_round(again[name]) for name, run in runs.items() if name in again}
    return Comparison(runner.suite, runs, complete=len(runs) == len(MODES) + 1)


def _round(runner: Runner) -> dict[str, Run]:
    runs = {PYSIM: runner.run()}
    with tempfile.TemporaryDirectory() as caches:
        for name, mode in MODES.items():
            cache = Path(caches, mode)
            try:
                runs[name] = runner.run([*PLUGIN, f"--cppsim={mode}"], cache)
            except NoSuite as error:
                print(f"{name}: {error}", file=sys.stderr)
    return runs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="suites", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("clones", type=Path, help="a folder with a clone of each project")
    parser.add_argument("suites", nargs="*", help="names of suites (default: all)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="runs the tests")
    parser.add_argument("--file", type=Path, default=FILE, help="default: suites.toml")
    parser.add_argument("--limit", type=int, default=1800, help="seconds for a run (default: 1800)")
    parser.add_argument("--requires", action="store_true", help="only list packages for pip")
    parser.add_argument("--url", default=GITHUB, help=f"of missing clones (default: {GITHUB})")
    parser.add_argument(
        "--jobs", type=int, default=1, help="suites at a time, each on a core (default: 1)"
    )
    parser.add_argument(
        "--seconds", type=float, default=0, help="repeat each suite so long, take the best"
    )
    return parser


class Cores:
    """Processors that suites take and give back, so that each has one for itself."""

    def __init__(self, jobs: int) -> None:
        self._free = SimpleQueue[int | None]()
        own = sorted(os.sched_getaffinity(0))
        for number in range(jobs):
            self._free.put(own[number % len(own)] if jobs > 1 else None)

    def compare(self, used: Sequence[Suite], options: argparse.Namespace) -> Comparison | NoSuite:
        """Export the first of ``used``, and the others, which it imports; run it on a core."""
        core = self._free.get()
        try:
            with tempfile.TemporaryDirectory() as folder:
                exported = [each.export(options.clones, Path(folder, each.name)) for each in used]
                path = [
                    top / name
                    for each, top in zip(used, exported, strict=True)
                    for name in each.path
                ]
                runner = Runner(used[0], exported[0], path, options.python, options.limit, core)
                return compare(runner, options.seconds)
        except NoSuite as error:
            return error
        finally:
            self._free.put(core)


def main(words: Sequence[str] | None = None) -> int:
    """Run the program. Return 1 if a test differs, 2 if a suite could not be run."""
    options = _parser().parse_intermixed_args(words)
    try:
        known = read(options.file)
        uses = [
            list(chosen(known, [suite.name, *suite.uses]))
            for suite in chosen(known, options.suites)
        ]
        if options.requires:
            needed = {package for used in uses for each in used for package in each.requires}
            print(*sorted({"pytest", *needed}), sep="\n")
            return 0
    except NoSuite as error:
        print(error, file=sys.stderr)
        return 2
    return _report(uses, options)


def _report(uses: Sequence[Sequence[Suite]], options: argparse.Namespace) -> int:
    compared, status = list[Comparison](), 0
    print(line(_TITLES), flush=True)
    for each in {suite.name: suite for used in uses for suite in used}.values():
        try:
            each.clone_from(options.url, options.clones)
        except NoSuite as error:
            print(error, file=sys.stderr)
            status = 2
    measure = partial(Cores(options.jobs).compare, options=options)
    with ThreadPoolExecutor(options.jobs) as pool:
        for found in pool.map(measure, uses):
            if isinstance(found, NoSuite):
                print(found, file=sys.stderr)
                status = 2
            else:
                compared.append(found)
                print(found.row(), flush=True)
    print(*sums(compared), *(each.details() for each in compared), sep="\n")
    if status or not all(each.complete for each in compared):
        return 2
    return int(any(each.differing for each in compared))


if __name__ == "__main__":
    sys.exit(main())
