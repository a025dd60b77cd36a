"""The part of many cases that `make check` tries, chosen by the commit. No tests here.

A commit always chooses the same, and each commit something else. `make deep` tries all cases.
``REPLAY=HASH`` chooses as the commit HASH does. The seeds of `support.seeds` are chosen so, and the
parameter sets of a test with the mark ``rotates(count)``, of which ``count`` run.
"""

import functools
import hashlib
import os
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
    """Return the first digits of the hash that chooses: of `REPLAY`, else of `head`."""
    return (os.environ.get(REPLAY) or head())[:DIGITS]


def lot(case: object, chooser: str) -> int:
    """Return a pseudo-random number for ``case``, another one for each commit ``chooser``."""
    return int(hashlib.sha256(f"{case} {chooser}".encode()).hexdigest(), 16)


def drawn(cases: Iterable[_Case], count: int) -> list[_Case]:
    """Return ``count`` of ``cases``, or all if there are fewer, in their order."""
    every, chooser = list(cases), commit()
    kept = sorted(range(len(every)), key=lambda place: lot(every[place], chooser))[:count]
    return [every[place] for place in sorted(kept)]


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the tests with `MARK` that do not run; those that do get the property `SAMPLED`.

    Tests of one module choose equal parameter sets.
    """
    groups = defaultdict[tuple[Path, str, tuple[int, ...]], list[pytest.Item]](list)
    for item in items:
        if mark := item.get_closest_marker(MARK):
            groups[item.path, getattr(item, "originalname", item.name), mark.args].append(item)
    left = set[pytest.Item]()
    for (path, _, (count,)), group in groups.items():
        kept = drawn(map(_parameters, group), count)
        name = path.stem.removeprefix("test_")
        for item in group:
            if _parameters(item) in kept:
                item.user_properties.append((SAMPLED, (name, len(group), _parameters(item))))
            else:
                left.add(item)
    return left


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
    return f"sampled {by}: {'; '.join(['a third of the seeds', *parts])}"
