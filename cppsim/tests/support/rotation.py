"""The part of many cases that `make check` tries, chosen by the commit. No tests here.

A commit always chooses the same, and each commit something else. `make deep` tries all cases.
``REPLAY=HASH`` chooses as the commit HASH does.

| Cases | How many |
|---|---|
| The seeds of `support.seeds` | a sixth of those that it names |
| The parameter sets of a test with the mark ``rotates(count)`` | ``count`` |
| Those of another slow test | a sixth, rounded up |
| Tests of a module that pass and now have more seeds, examples or smaller steps | a sixth |

So each slow test runs at each commit, with some of its parameters. A test with a mark of `STORING`
has all its parameters: most of their verdicts are stored.
"""

import functools
import hashlib
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

REPLAY = "REPLAY"
"""Environment variable that names the commit whose choice is repeated: ``REPLAY=c87278f1``."""

MARK = "rotates"

SAMPLED = "sampled"
"""Property of a test with `MARK` that runs: its module, its number of cases, and the case."""

PART = 6
"""One in this many cases runs, of those without a number of their own."""

STORING = ("judges", "proves")
"""Marks of tests that store a verdict for each of their cases."""

DIGITS = 8
"""Digits of a commit's hash that choose."""

_ROOT = Path(__file__).parents[2]
_Case = TypeVar("_Case")


@functools.cache
def head() -> str:
    """Return the hash of the commit, empty outside a repository."""
    try:
        ran = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return ran.stdout.strip()


def commit() -> str:
    """Return the first digits of the hash that chooses: of `REPLAY`, else of `head`.

    Raises ``ValueError`` for a `REPLAY` that no run has printed, which would choose other cases.
    """
    told = os.environ.get(REPLAY, "")
    if told and not re.fullmatch(f"[0-9a-f]{{{DIGITS},}}", told):
        expected = f"the hash of a commit, {DIGITS} digits or more"
        raise ValueError(f"{REPLAY}: {told!r}; expected {expected}, as a run prints it")
    return (told or head())[:DIGITS]


def lot(case: object, chooser: str) -> int:
    """Return a pseudo-random number for ``case``, another one for each commit ``chooser``."""
    return int(hashlib.sha256(f"{case} {chooser}".encode()).hexdigest(), 16)


def drawn(cases: Iterable[_Case], count: int) -> list[_Case]:
    """Return ``count`` of ``cases``, or all if there are fewer, in their order."""
    every, chooser = list(cases), commit()
    kept = sorted(range(len(every)), key=lambda place: lot(every[place], chooser))[:count]
    return [every[place] for place in sorted(kept)]


def left_out(items: Sequence[pytest.Item], *, passed: bool) -> set[pytest.Item]:
    """Return the tests that do not run; those with `MARK` that do get the property `SAMPLED`.

    ``passed``: tests that are not slow have passed, and go deeper now. Tests of one module choose
    equal parameter sets.
    """
    left = set[pytest.Item]()
    for (path, _, mark), group in _groups(items, passed=passed).items():
        cases = list(map(_parameters, group) if mark else (item.nodeid for item in group))
        kept = drawn(cases, mark[0] if mark else -(-len(cases) // PART))
        name = path.stem.removeprefix("test_")
        for item, case in zip(group, cases, strict=True):
            if case not in kept:
                left.add(item)
            elif mark:
                item.user_properties.append((SAMPLED, (name, len(group), case)))
    return left


def _groups(
    items: Sequence[pytest.Item], *, passed: bool
) -> dict[tuple[Path, str, tuple[int, ...]], list[pytest.Item]]:
    """Return the tests of which a part runs, by module, name, and the arguments of `MARK`."""
    groups = defaultdict[tuple[Path, str, tuple[int, ...]], list[pytest.Item]](list)
    for item in items:
        name = getattr(item, "originalname", item.name)
        if mark := item.get_closest_marker(MARK):
            groups[item.path, name, mark.args].append(item)
        elif item.get_closest_marker("slow"):
            if not any(map(item.get_closest_marker, STORING)):
                groups[item.path, name, ()].append(item)
        elif passed:
            groups[item.path, "", ()].append(item)
    return groups


def _parameters(item: pytest.Item) -> str:
    """Return the part of the test's name in brackets."""
    return item.name.partition("[")[2].removesuffix("]")


def summary(cases: Iterable[Sequence[object]]) -> str:
    """Return a line that says what was tried of ``cases``, the values of `SAMPLED`."""
    tried = defaultdict[tuple[object, object], set[str]](set)
    for name, count, case in cases:
        tried[name, count].add(str(case))
    parts = [
        f"{name} {len(each)} of {count} ({', '.join(sorted(each))})"
        for (name, count), each in sorted(tried.items(), key=str)
    ]
    chosen = commit()
    by = f"by {chosen} ({REPLAY}={chosen} repeats it)" if chosen else "without a commit"
    others = "a sixth of the seeds and of the cases of each other test"
    return f"sampled {by}: {'; '.join([*parts, others])}"
