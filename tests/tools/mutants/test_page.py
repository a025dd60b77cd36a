"""The page shows the recorded summaries, and a summary counts each outcome once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mutants import page
from mutants.finders import changes
from mutants.packages import PACKAGES
from mutants.run import Answer, Outcome

[CHANGE] = (each for each in changes("x = a + b", "links/unit.py") if each.before == "a + b")


def found() -> dict[str, Any]:
    outcomes = [
        Answer(Outcome.CAUGHT, "a test", 1),
        Answer(Outcome.CAUGHT, "a test", 1, late=True),
        Answer(Outcome.CAUGHT, "a test", 1),
        Answer(Outcome.SURVIVED, "", 1),
        Answer(Outcome.EXPLAINED, "why", 0),
    ]
    judged = [(replace(CHANGE, line=line), each) for line, each in enumerate(outcomes, 1)]
    return page.summary(PACKAGES["host"], judged, 11, "quick")


def test_a_summary_counts_each_outcome_once() -> None:
    figures = {name: value for name, value in found().items() if name not in ("date", "survivors")}
    assert figures == {
        "package": "host",
        "part": "",
        "tier": "quick",
        "seed": 11,
        "count": 5,
        "caught_by_own": 2,
        "caught_by_others": 1,
        "same_or_explained": 1,
    }
    assert found()["survivors"] == [
        {"place": "links/unit.py:4", "in": "", "change": "a + b -> (a - b)"}
    ]


def test_the_page_has_a_row_and_the_survivors() -> None:
    text = page.text([{**found(), "date": "2026-11-28"}])
    assert "| host | 2026-11-28 | quick | 11 | 5 | 2 | 1 | 1 | 1 | 75.0% |\n" in text
    assert text.endswith("host/bitlane/links/unit.py:4\n    a + b -> (a - b)\n```\n")


def test_a_part_has_a_row_and_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SUMMARIES", tmp_path)
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    for part in ("links/", "", "links/arq.py"):
        page.record({**found(), "part": part})
    names = {path.name for path in tmp_path.glob("*.json")}
    assert names == {"host.json", "host-links.json", "host-links-arq.json"}
    rows = [line for line in page.PAGE.read_text().splitlines() if line.startswith("| host")]
    starts = [row.split(" | ")[0] for row in rows]
    assert starts == ["| host", "| host, `links/`", "| host, `links/arq.py`"]


def test_the_page_is_that_of_the_recorded_summaries() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(page.recorded())
