"""Lines of the pages fit a terminal: 100 characters of text and code, tables of short cells."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.docs.pages import PAGES, ROOT, blocks, name

WIDTH = 100

ROW_WIDTH = 125
"""A row of a table is one line of Markdown, and is read with the targets of its links hidden."""

CELL_WORDS = 60

MEASURED = ROOT / "docs" / "performance.md"
"""Its generator, ``support.docs.performance``, writes a line for each paragraph and each result."""

CHANGES = ROOT / "CHANGELOG.md"
"""Its entries are for releases; they are read one at a time."""

_PROMPTS = (">>> ", "... ", "$ ")


def long_lines(page: Path) -> Iterator[str]:
    """Yield the lines of ``page`` that are too long, except the output of programs and addresses.

    Output is compared with the program's, character by character.
    """
    code: dict[int, str] = {}
    for block in blocks(page):
        for number in range(block.line, block.line + block.text.count("\n")):
            code[number] = block.language
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        language = code.get(number)
        if language in ("python", "console") and not line.startswith(_PROMPTS):
            continue
        shown = re.sub(r"\]\([^)]*\)", "]", line) if line.startswith("|") else line
        width = ROW_WIDTH if line.startswith("|") else WIDTH
        if language != "text" and len(shown) > width and len(line.split()) > 1:
            yield f"{name(page)}:{number}: {len(shown)}: {shown}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in (MEASURED, CHANGES)], ids=name
)
def test_the_lines_of_a_page_fit_a_terminal(page: Path) -> None:
    assert list(long_lines(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_cells_of_a_page_are_short(page: Path) -> None:
    rows = [x for x in page.read_text(encoding="utf-8").splitlines() if x.startswith("|")]
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    assert [cell for cell in cells if len(cell.split()) > CELL_WORDS] == []
