"""The pages quote messages of errors as the code writes them."""

import re
from functools import cache

import pytest

from support.docs.pages import ROOT

FOLDERS = ("host/bitlane", "sim/bitlane_sim", "boards/bitlane_boards", "cppsim/src/cppsim")

COUNTS = {"docs/network.md": 12, "docs/troubleshooting.md": 21}
"""Messages that the tables of each page quote."""


@cache
def sources() -> str:
    """Return the code, in which strings that continue on the next line are one string."""
    files = (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")))
    return re.sub(r'"\n\s+f?"', "", "".join(file.read_text(encoding="utf-8") for file in files))


def quoted(page: str) -> list[str]:
    """Return the messages in the tables of ``page``: first cells, or all if there are two."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    cells = [cell for row in rows for cell in (row[:1] if len(row) == 3 else row)]
    return [text for cell in cells for text in re.findall(r"`([^`]* [^`]*)`", cell)]


@pytest.mark.parametrize("page", COUNTS)
def test_the_messages_on_a_page_are_those_of_the_code(page: str) -> None:
    messages = quoted(page)
    assert len(messages) == COUNTS[page]
    assert [text for text in messages if text not in sources()] == []
