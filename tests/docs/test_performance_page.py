"""The performance page says what the files say, and what is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from bitlane.version import __version__
from support.docs.performance import main, page

_FIELDS = ("work", "unit", "width", "goal", "bound", "peer", "measured", "ratio", "met")
_CYCLES: dict[str, Any] = {
    "kind": "cycles",
    "date": "2026-11-21",
    "machine": "A machine, 2 cores",
    "versions": {"bitlane": "1.2", "amaranth": "0.5"},
    "rows": [
        dict(zip(_FIELDS, row, strict=True))
        for row in (
            ("64 KiB NOT", "beat/cycle", 64, 0.998, 1.0, None, 0.99854, 0.99854, True),
            ("64 B NOT", "cycles", 32, 28, 19, 22, 29, 29 / 19, False),
        )
    ],
}
_AREA_ROW: dict[str, Any] = {
    "design": "copy-32",
    "family": "ecp5",
    "chip": "LFE5U-25F",
    "width": 32,
    "scope": "the data path",
    "cells": {"lut4": 500, "carry": 80, "ff": 400, "ram": {"DP16KD": 2}},
    "mhz": 150.4,
    "mhz_by_seed": {"1": 150.4, "2": 149.0, "3": 160.25},
    "gigabytes_per_second": 0.6016,
    "most_lut4": 522,
    "least_mhz": 150.0,
    "met": True,
    "failure": "",
    "peers": [
        {"name": "axi_cdma", "lut4": 522, "carry": None, "ff": 446, "ram": 28, "mhz": 76.3}
        | {"gigabytes_per_second": 0.3052}
    ],
}
_AREA = {**_CYCLES, "kind": "area", "rows": [_AREA_ROW]}


def test_figures_of_the_files_are_on_the_page() -> None:
    text = page([_CYCLES, _AREA], "performance.png")
    assert "Measured 2026-11-21 on A machine, 2 cores; bitlane 1.2, amaranth 0.5." in text
    assert "| work | unit | bound | 64 bits | 32 bits |\n" in text
    assert "| 64 KiB NOT | beat/cycle | 1.000 | 0.9985 | - |\n" in text
    assert "| 64 B NOT | cycles | 19 | - | **29** / 22 |\n" in text
    assert (
        "| `copy-32` | 500 | 80 | 400 | 2 DP16KD | 150.4 | 149.0 to 160.2 | 0.60 |"
        " <= 522 LUT4, >= 150 MHz | yes |\n" in text
    )
    assert "| axi_cdma (peer) | 522 | - | 446 | 28 | 76.3 | - | 0.31 | - | - |\n" in text
    assert "- `copy-32`: the data path." in text
    assert "](performance.png)" in text


def test_placement_that_failed_is_said() -> None:
    failed = {**_AREA_ROW, "failure": "ERROR: no room", "met": False, "mhz": None}
    text = page([{**_AREA, "rows": [failed]}], None)
    assert "**not placed**: ERROR: no room" in text
    assert "150.4" not in text


def test_what_was_not_measured_is_said() -> None:
    text = page([_CYCLES], None)
    assert "Not measured here: `bitlane area --json FILE`." in text
    assert "Not measured here: `python -m simulators.run verilator --json FILE`." in text
    assert "![" not in text


def test_seconds_are_shown() -> None:
    figures = {"compiled, cycles/s": 1_234_567.0, "ratio": 1.5}
    text = page([{**_CYCLES, "kind": "verilator", "rows": figures}], None)
    assert "| compiled, cycles/s | 1,234,567 |\n| ratio | 1.50 |" in text


def test_a_call_of_the_host_has_a_row() -> None:
    figures = {"x, microseconds": 2.5, "x, yardsticks": 0.5, "y, copies": 1.25}
    text = page([{**_CYCLES, "kind": "host", "rows": figures}], None)
    assert "| call | microseconds | yardsticks |\n" in text
    assert "| ---: |\n| x | 2.50 | 0.50 |\n\n| what" in text
    assert "| y, copies | 1.25 |" in text


def test_figures_of_another_version_are_marked() -> None:
    mark = f"**Not measured since: this page is of bitlane {__version__}.**"
    today = {**_CYCLES, "versions": {"bitlane": __version__}}
    assert mark not in page([today], None)
    assert f"bitlane 1.2, amaranth 0.5. {mark}" in page([_CYCLES], None)


def test_the_cycles_in_docs_are_of_this_version() -> None:
    """They are the same on every computer, and take a minute: `make figures` measures them."""
    file = Path(__file__).parents[2] / "docs" / "performance" / "cycles.json"
    assert json.loads(file.read_text())["versions"]["bitlane"] == __version__


def test_the_page_in_docs_says_what_the_files_beside_it_say() -> None:
    docs = Path(__file__).parents[2] / "docs"
    files = sorted((docs / "performance").glob("*.json"))
    records = [json.loads(file.read_text()) for file in files]
    assert (docs / "performance.md").read_text() == page(records, "performance/cycles.png")


def test_command_line(tmp_path: Path) -> None:
    file, output = tmp_path / "cycles.json", tmp_path / "performance.md"
    file.write_text(json.dumps(_CYCLES))
    assert main([str(file), "-o", str(output), "--picture", "p.png"]) == 0
    assert output.read_text() == page([_CYCLES], "p.png")
    assert set(tmp_path.iterdir()) == {file, output}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("{", "no JSON"),
        ("[1]", "no file of measured figures"),
        ('{"kind": "x"}', "no file of measured figures"),
    ],
)
def test_bad_files(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "figures.json", tmp_path / "performance.md"
    if content is not None:
        file.write_text(content)
    assert main([str(file), "-o", str(output)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not output.exists()
