"""Figures on the pages are those of files that commands write, and tables of them are not edited.

A figure is a number with one of `UNITS`. Pages of measurements with their own date and command, and
the pages that `support.docs.performance` writes, are left out.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.docs.figures import filled, records
from support.docs.pages import PAGES, ROOT, blocks, name

UNITS = r"LUT4|CCU2C|[MG]B/s|[kM]?Hz|cycles a second|times as (?:fast|many|much)"

READ = (
    "README.md",
    "cppsim/docs/measurements.md",
    "docs/architecture.md",
    "docs/boards.md",
    "docs/compare.md",
    "docs/distances.md",
    "docs/index.md",
    "docs/litex.md",
    "docs/models.md",
    "docs/network.md",
    "docs/security.md",
    "docs/troubleshooting.md",
    "docs/verification.md",
)
"""Pages whose figures are read."""

MARKED = [page for page in PAGES if "<!-- figures: " in page.read_text(encoding="utf-8")]

FILES = sorted(
    file
    for folder in ("performance", "measurements")
    for file in (ROOT / "docs" / folder).glob("*.json")
)
"""The files that `make figures`, `make status` and other commands write."""

PRINTED = ROOT / "cppsim" / "docs" / "measurements.json"
"""The lines that cppsim's benchmarks printed; ``cppsim/benchmarks/record.py`` writes it."""


def numbers(value: Any) -> Iterator[float]:
    """Yield all numbers in the content of a file."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def figures(text: str) -> list[str]:
    """Return the numbers before units in the text of a page."""
    return re.findall(
        rf"(?<![\w.,-])(\d[\d,]*(?:\.\d+)?)[- ](?:{UNITS})(?!\w)", " ".join(text.split())
    )


def is_in(figure: str, known: list[float]) -> bool:
    """Return whether a number, rounded as ``figure`` is, equals it."""
    digits = len(figure.partition(".")[2])
    return any(
        f"{number:,.{digits}f}".replace(",", "") == figure.replace(",", "") for number in known
    )


@pytest.mark.parametrize("page", READ)
def test_each_figure_of_a_page_is_in_a_file(page: str) -> None:
    known = [number for file in FILES for number in numbers(json.loads(file.read_text()))]
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    for block in blocks(path):
        text = text.replace(block.text, "")
    assert [figure for figure in figures(text) if not is_in(figure, known)] == []


@pytest.mark.parametrize("page", MARKED, ids=name)
def test_the_tables_of_a_page_are_what_the_program_writes(page: Any) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text, records()) == text, "run make performance"
    names = re.findall(r"<!-- figures: (\w+) -->\n\n\| ", text)
    assert names
    assert len(names) == text.count("<!-- figures: ") == text.count("<!-- end of figures -->")


def test_the_page_shows_what_the_benchmarks_of_cppsim_printed() -> None:
    entries = json.loads(PRINTED.read_text(encoding="utf-8"))
    page = PRINTED.with_suffix(".md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- printed: (\w+) -->\n\n```text\n(.*?)```", page, flags=re.DOTALL)
    printed = {name: "".join(f"{line}\n" for line in x["printed"]) for name, x in entries.items()}
    assert dict(shown) == printed
    assert len(shown) == page.count("```") / 2


def test_figures_are_found_and_compared() -> None:
    assert figures("has 5,135 LUT4, at\n125.4 MHz; 2 cores, v0.11.1 MHz") == ["5,135", "125.4"]
    assert is_in("5,135", [5135])
    assert is_in("125.4", [125.44])
    assert not is_in("125.5", [125.44])
    assert list(numbers({"a": [1, {"b": 2.5}], "c": True, "d": "3"})) == [1, 2.5]
