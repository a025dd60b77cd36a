"""``make mutants`` changes a package's source in many places, one at a time, and runs the tests.

A change that no test notices is a survivor. Either a test is missing, or the change has no effect;
then `equivalent.toml` must list it with a reason. Answers are stored, so that an interrupted run
resumes; survivors are tried again.
"""

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue

from mutants.changes import Change, Equivalent, changes, equivalents, sample
from mutants.packages import PACKAGES, PROJECT, Package
from mutants.page import record, summary
from mutants.relevance import has_netlist
from mutants.workplace import TIERS, NoAnswer, Workplace


class Outcome(StrEnum):
    """The result for a change."""

    CAUGHT = "caught"
    SAME = "same netlists"
    EXPLAINED = "explained"
    SURVIVED = "SURVIVED"


@dataclass(frozen=True)
class Answer:
    """An outcome, and ``by``: the test that caught the change, or why it has no effect.

    ``late``: the test is not one of the file's own.
    """

    outcome: Outcome
    by: str
    seconds: float
    late: bool = False


def judge(
    change: Change,
    place: Workplace,
    known: Sequence[Equivalent],
    *,
    folder_only: bool = False,
) -> Answer:
    """Judge ``change``: run its quick tests, compare netlists, then run all other tests.

    ``folder_only`` leaves out the netlists and these other tests. Raises ``NoAnswer`` if a test
    also fails without the change.
    """
    for each in known:
        if each.matches(change):
            return Answer(Outcome.EXPLAINED, each.reason, 0)
    started = time.monotonic()
    package = place.package
    own, whole = package.own_tests(change.file), package.whole_tests(change.file)
    outcome, by, tests = Outcome.SURVIVED, "", own
    place.warm_up(change.file, own)
    with place.changed(change):
        compared = package.circuit and has_netlist(change.file) and not folder_only
        if own and (by := place.fails(own)):
            outcome = Outcome.CAUGHT
        elif compared and place.has_same_netlists(change.file):
            outcome = Outcome.SAME
        elif not folder_only and (by := place.fails(whole)):
            outcome, tests = Outcome.CAUGHT, whole
    if outcome is Outcome.CAUGHT and not place.pass_unchanged(tests, by):
        raise NoAnswer(f"fails without any change: {by}")
    seconds = round(time.monotonic() - started, 1)
    return Answer(outcome, by, seconds, late=tests is whole)


class Answers:
    """The answers of this run and of earlier ones, in a file with a line for each."""

    def __init__(self, path: Path, folder: str) -> None:
        self._path = path
        self._sources = PROJECT / folder
        self._answers: dict[str, tuple[Answer, str | None]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            entry = json.loads(line)
            key, test = entry.pop("key"), entry.pop("test", None)
            answer = Answer(**{**entry, "outcome": Outcome(entry["outcome"])})
            self._answers[key] = answer, test

    def _key(self, change: Change) -> str:
        """Return a key that depends on the change and on the content of its file."""
        source = (self._sources / change.file).read_bytes()
        place = f"{change.start} {change.after}"
        return f"{change} {hashlib.sha256(source + place.encode()).hexdigest()[:16]}"

    def get(self, change: Change) -> Answer | None:
        """Return the stored answer if it is still valid.

        The change had no effect, or was caught by a test whose file has not changed since.
        """
        answer, test = self._answers.get(self._key(change), (None, ""))
        if answer is None or answer.outcome not in (Outcome.CAUGHT, Outcome.SAME):
            return None
        return answer if test == _file_of(answer.by) else None

    def add(self, change: Change, answer: Answer) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            entry = {"key": self._key(change), "test": _file_of(answer.by), **asdict(answer)}
            file.write(json.dumps(entry) + "\n")


def _file_of(test: str) -> str:
    """Return a digest of the file of ``test``; empty if there is none, as of a deadline."""
    path = PROJECT / test.partition("::")[0]
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def report(package: Package, answers: Sequence[tuple[Change, Answer]]) -> tuple[str, bool]:
    """Return the final report, and whether no change survived."""
    counts = Counter(answer.outcome for _, answer in answers)
    lines = [
        f"{package.folder}/{change} [{change.where}]"
        for change, answer in answers
        if answer.outcome is Outcome.SURVIVED
    ]
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)
    seen = counts[Outcome.CAUGHT] + counts[Outcome.SURVIVED]
    share = f"; {counts[Outcome.CAUGHT] / seen:.1%} of {seen} that change something" if seen else ""
    text = f"{package.name}: {len(answers)} changes: {told}{share}"
    return "\n".join([*lines, text]), not lines


def _found(package: Package, only: str) -> list[Change]:
    """Return all changes of the files with paths that begin with ``only``."""
    return [
        change
        for file, path in package.sources().items()
        if file.startswith(only)
        for change in changes(path.read_text(encoding="utf-8"), file, circuit=package.circuit)
    ]


def _judge_all(
    chosen: Sequence[Change], answers: Answers, places: Sequence[Workplace], *, folder_only: bool
) -> Iterator[tuple[Change, Answer]]:
    """Judge the changes without an answer, one at a time in each place; yield all in order."""
    name = places[0].package.name
    known = [each for each in equivalents() if each.package == name]
    idle: SimpleQueue[Workplace] = SimpleQueue()
    for place in places:
        idle.put(place)

    def answer(change: Change) -> Answer:
        if earlier := answers.get(change):
            return earlier
        place = idle.get()
        try:
            found = judge(change, place, known, folder_only=folder_only)
        finally:
            idle.put(place)
        answers.add(change, found)
        return found

    with ThreadPoolExecutor(len(places)) as pool:
        yield from zip(chosen, pool.map(answer, chosen), strict=True)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 1 on")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--package", choices=PACKAGES, default="rtl", help="what is changed")
    parser.add_argument("--seed", type=int, default=1, help="which changes are chosen")
    parser.add_argument("--count", type=_count, default=200, help="how many (default: 200)")
    parser.add_argument(
        "--file", default="", help="only of this file or folder, as addresses/bursts.py"
    )
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1, help="at a time")
    parser.add_argument("--deadline", type=float, default=900, help="seconds for the tests of one")
    parser.add_argument("--tier", choices=TIERS, default="full", help="which tests are run")
    parser.add_argument("--folder-only", action="store_true", help="run only tests of its folder")
    parser.add_argument("--answers", type=Path, help="default: out/mutants_PACKAGE_TIER.jsonl")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a summary to FILE")
    parser.add_argument(
        "--record", action="store_true", help="write the summary to docs/measurements/mutants.md"
    )
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run the program. Return 1 if a change survived, 2 if a change could not be judged."""
    parser = _parser()
    options = parser.parse_args(words)
    package = PACKAGES[options.package]
    chosen = sample(_found(package, options.file), options.count, options.seed)
    if not chosen:
        told = f"--file: {options.file!r}: nothing to change in {package.folder}"
        parser.error(f"{told}; expected the start of a path in it, as addresses/bursts.py")
    if options.list:
        print(*chosen, sep="\n")
        return 0
    try:
        judged = _judged(package, chosen, options)
    except NoAnswer as error:
        print(error, file=sys.stderr)
        return 2
    text, good = report(package, judged)
    print(text)
    tier = f"{options.tier}, own tests alone" if options.folder_only else options.tier
    found = summary(package, judged, options.seed, tier, options.file)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.record:
        record(found)
    return 0 if good else 1


def _judged(
    package: Package, chosen: Sequence[Change], options: argparse.Namespace
) -> list[tuple[Change, Answer]]:
    """Judge the changes, and print each with its answer. Raises ``NoAnswer``."""
    path = options.answers or PROJECT / f"out/mutants_{package.name}_{options.tier}.jsonl"
    answers = Answers(path, package.folder)
    places = [
        Workplace(PROJECT, package, options.deadline, options.tier) for _ in range(options.workers)
    ]
    judged = []
    try:
        for place in places if package.circuit and not options.folder_only else []:
            place.remember_netlists()
        all_answers = _judge_all(chosen, answers, places, folder_only=options.folder_only)
        for number, (change, answer) in enumerate(all_answers, 1):
            print(f"{number:4}/{len(chosen)} {change}", flush=True)
            print(f"{answer.outcome:>20}, {answer.seconds:g} s: {answer.by}", flush=True)
            judged.append((change, answer))
    finally:
        for place in places:
            place.close()
    return judged


if __name__ == "__main__":
    sys.exit(main())
