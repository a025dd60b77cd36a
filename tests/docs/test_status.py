"""The page of status is what its program writes, and that follows boards, tests and proofs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bitlane_boards import boards
from support.docs import status
from support.docs.pages import ROOT
from support.docs.status import INTERFACES, PAGE, claim, collect, extent, page, proofs, recorded

REPORT = """{"board": "hx8k", "seed": 1, "clock_mhz": 72.0, "achieved_mhz": 90.0,
"cells": {"ICESTORM_LC": [5000, 7680]}, "blocks": {}, "line_clocks_mhz": {}, "versions": {}}"""

OTHER = REPORT.replace('"seed": 1', '"seed": 2').replace("90.0", "80.0")
"""A placement that nobody publishes."""


def test_the_page_is_what_its_program_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(recorded()), "run make status"


def test_each_board_has_a_row_and_none_has_run() -> None:
    rows = [line for line in page({}).splitlines() if line.startswith("| `") and "Hz" in line]
    assert [row.split("`")[1] for row in rows] == list(boards())
    assert all(" | not recorded | " in row for row in rows)
    assert {row.split(" | ")[-1] for row in rows} == {"no |"}


def test_a_build_is_collected_with_its_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "BUILDS", tmp_path / "builds.json")
    for folder, text in (("hx8k", REPORT), ("other", OTHER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "report.json").write_text(text)
    collect(tmp_path)
    [build] = recorded().values()
    assert build["report"]["achieved_mhz"] == 90
    assert build["date"] == datetime.now(UTC).strftime("%Y-%m-%d")
    assert "| `hx8k` | iCE40 | 72 MHz | 25% |" in page(recorded())


@pytest.mark.parametrize("test", INTERFACES.values())
def test_each_interface_has_a_test_that_says_what_it_shows(test: str) -> None:
    assert "def test_" in (ROOT / test).read_text(encoding="utf-8")
    assert len(claim(ROOT / test)) > 40


def test_bounded_proofs_say_so(tmp_path: Path) -> None:
    extents = {file.stem: extent(file) for file in proofs()}
    assert extents["test_core"] == "**for 25 cycles**"
    assert extents["test_row_sum"] == "for all time"
    assert set(extents.values()) >= {"for all time", "**partly for 14 cycles**"}
    file = tmp_path / "test_new.py"
    file.write_text("DEPTH = 7\nproof.holds(It(), Bounded(DEPTH))\n")
    assert extent(file) == "**for 7 cycles**"
