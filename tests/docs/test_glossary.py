"""The glossary: every name in it exists, and no word has two entries."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from support.docs.pages import PAGES, ROOT, links, name

TEXT = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")

ENTRIES = dict(re.findall(r"^- \*\*([^*]+)\*\*: ((?:.+\n)+?)(?=-|\n|\Z)", TEXT, flags=re.M))

NAMES = {word: re.findall(r"`([a-z_]+\.[\w.]+)`", text) for word, text in ENTRIES.items()}

GENERATED = {"performance.md", "registers.md"}
"""Pages of reference that programs write; the pages that lead to them explain the words."""

READ = [
    page
    for page in PAGES
    if page.parent in (ROOT / "docs", ROOT / "docs" / "measurements")
    and page.name not in GENERATED | {"glossary.md"}
]

IDEAS = {"back-pressure", "in flight"}
"""Words for which no single name stands in the code."""


def found(name: str) -> Any:
    """Return the module, or the attribute of a module, that ``name`` spells."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except AttributeError:
        return import_module(name)


@pytest.mark.parametrize("word", NAMES)
def test_each_word_has_the_name_that_it_has_in_the_code(word: str) -> None:
    names = NAMES[word]
    assert len(names) == (0 if word in IDEAS else 1)
    for each in names:
        assert found(each) is not None


def test_a_name_that_does_not_exist_is_found() -> None:
    with pytest.raises(ImportError):
        found("bitlane_rtl.streams.fifo.Queue")


def test_no_word_has_two_entries() -> None:
    words = re.findall(r"^- \*\*([^*]+)\*\*", TEXT, flags=re.M)
    assert len(words) == len(set(words)) >= 30
    assert words == list(ENTRIES)


@pytest.mark.parametrize("page", READ, ids=name)
def test_each_page_leads_to_the_glossary(page: Path) -> None:
    assert any(link.endswith("glossary.md") for link in links(page))
