"""The project's Markdown pages: their code blocks, code words, links and anchors. Runs nothing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[3]

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "cppsim").glob("*.md"),
        *(ROOT / "cppsim" / "docs").rglob("*.md"),
    ]
)

_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """A code block of ``page``; its first line is ``line`` of the file, counted from 1.

    ``language`` is the first word behind the fence, and empty where a block is only indented.
    """

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{name(self.page)}:{self.line}"


def name(page: Path) -> str:
    """Return the path of ``page`` relative to the top of the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Return all code blocks of ``page`` but MyST's directives, which the site's build checks."""
    found = []
    for token in _tokens(page):
        if token.type in ("fence", "code_block") and not token.info.startswith("{"):
            language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
            first = (token.map or [0])[0] + (2 if token.type == "fence" else 1)
            found.append(Block(page, first, language, token.content))
    return found


def code_words(page: Path) -> list[str]:
    """Return the texts between backticks in the running text of ``page``."""
    return [each.content for each in _inline(page) if each.type == "code_inline"]


def links(page: Path) -> list[str]:
    """Return the targets of the links and pictures of ``page``."""
    attributes = {"link_open": "href", "image": "src"}
    return [
        str(each.attrs[attributes[each.type]]) for each in _inline(page) if each.type in attributes
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors of ``page``: its headings, as forges and MyST spell them."""
    tokens = _tokens(page)
    titles = [
        tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def _tokens(page: Path) -> Sequence[Token]:
    return _MARKDOWN.parse(page.read_text(encoding="utf-8"))


def _inline(page: Path) -> Iterator[Token]:
    for token in _tokens(page):
        yield from token.children or []
