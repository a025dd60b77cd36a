"""Summaries of `mutants.run` as JSON, and the page that shows them.

    PYTHONPATH=tools python -m mutants.page

writes the page from the summaries in ``docs/measurements/mutants``.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mutants.changes import Change
from mutants.packages import PACKAGES, PROJECT, Package

SUMMARIES = PROJECT / "docs/measurements/mutants"
PAGE = PROJECT / "docs/measurements/mutants.md"

_LISTED = 5
"""Most survivors of a row that the page lists."""

_HEAD = """\
# Measurements: changes that tests notice

`make mutants` changes one place of a package's source at a time and runs the tests: first those in
the folder of the file, then the package's whole tier. The [glossary](../glossary.md) explains the
words. This command writes a row, and with `--file links/` the row of a part:

    make mutants PACKAGE=host COUNT=150 SEED=11 TIER=quick OPTIONS="--folder-only --record"

- *Own* counts the changes that tests of the file's folder notice, *others* those that only other
  tests notice. The share is of the changes that have an effect.
- A change is *explained* if `tools/mutants/equivalent.toml` says why it has no effect that a test
  could see. It is the *same* if it leaves all netlists as they were; netlists are not compared
  where only own tests run.
- Files that only choose what is built or tried are not changed: the configurations of rtl, and
  the random designs, testbenches and values of cppsim.
- We write tests for the survivors and run the same changes again, because another seed would show
  less. In the first run, the tests noticed 104 of 130 changes of host, and of cppsim 23 of the
  first 35 changes and 70 of 89 later ones.
- Of rtl, host and cppsim, the changes that survived ran again once they had new tests.
- The tests of sim's measurements and campaigns and nearly all tests of boards are slow, so the
  quick tier notices few changes there.

| Package | Date | Tier | Seed | Changes | Own | Others | Survived | Same, explained | Share |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|
"""


def summary(
    package: Package, judged: Sequence[tuple[Change, Any]], seed: int, tier: str, part: str = ""
) -> dict[str, Any]:
    """Return the figures of the answers to the changes of ``package``.

    ``part`` is the prefix of the paths of the files that were changed.
    """
    caught = [answer for _, answer in judged if answer.outcome == "caught"]
    survivors = [
        {"place": f"{change.file}:{change.line}", "in": change.where, "change": change.summary}
        for change, answer in judged
        if answer.outcome == "SURVIVED"
    ]
    return {
        "package": package.name,
        "part": part,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "tier": tier,
        "seed": seed,
        "count": len(judged),
        "caught_by_own": sum(not answer.late for answer in caught),
        "caught_by_others": sum(answer.late for answer in caught),
        "same_or_explained": len(judged) - len(caught) - len(survivors),
        "survivors": survivors,
    }


def text(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of the summaries ``found``."""
    rows, sections = [], []
    for each in found:
        package, survivors = each["package"], each["survivors"]
        name = f"{package}, `{each['part']}`" if each["part"] else package
        caught = each["caught_by_own"] + each["caught_by_others"]
        share = f"{caught / (caught + len(survivors)):.1%}" if caught or survivors else ""
        figures = [each[name] for name in ("date", "tier", "seed", "count")]
        figures += [each["caught_by_own"], each["caught_by_others"], len(survivors)]
        cells = [name, *figures, each["same_or_explained"], share]
        rows.append(f"| {' | '.join(map(str, cells))} |")
        if survivors:
            listed = survivors[:_LISTED]
            places = "\n".join(_survivor(PACKAGES[package].folder, one) for one in listed)
            sections.append(f"\n## Survivors in {name}\n\n```text\n{places}\n```\n")
            if more := len(survivors) - len(listed):
                file = _path(package, each["part"])
                sections.append(f"\n{more} more are in [{file.name}](mutants/{file.name}).\n")
    return _HEAD + "\n".join(rows) + "\n" + "".join(sections)


def _survivor(folder: str, one: Mapping[str, str]) -> str:
    change = " ".join(one["change"].split())
    return f"{folder}/{one['place']}\n    {change if len(change) < 93 else change[:92] + '…'}"


def _path(package: str, part: str) -> Path:
    words = [package, *part.removesuffix(".py").split("/")]
    return SUMMARIES / f"{'-'.join(filter(None, words))}.json"


def recorded() -> list[dict[str, Any]]:
    """Return all recorded summaries: those of a package, then those of its parts."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in SUMMARIES.glob("*.json")]
    return sorted(found, key=lambda each: ([*PACKAGES].index(each["package"]), each["part"]))


def record(found: Mapping[str, Any]) -> None:
    """Store a summary in place of the last one of its package and part, and write the page anew."""
    SUMMARIES.mkdir(parents=True, exist_ok=True)
    path = _path(found["package"], found["part"])
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write()


def write() -> None:
    """Write the page from all recorded summaries."""
    PAGE.write_text(text(recorded()), encoding="utf-8")


if __name__ == "__main__":
    write()
