"""Links on the pages lead somewhere: files and headings exist. Nothing is fetched."""

import html
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.docs.pages import PAGES, ROOT, anchors, code_words, links, name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = {link: why for link in links(page) if (why := _broken(page, link))}
    assert broken == {}


def _broken(page: Path, link: str) -> str:
    parts = urlsplit(link)
    if parts.scheme:
        sound = parts.scheme == "https" and "." in parts.netloc
        return "" if sound else "expected https and a host"
    target = (page.parent / parts.path).resolve() if parts.path else page
    if not target.exists():
        return f"no file {target}"
    if not target.is_relative_to(ROOT):
        return "leads out of the repository"
    if parts.fragment and parts.fragment not in anchors(target):
        return f"no heading #{parts.fragment}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build", "out", ".venv"}
    named = [word for word in code_words(page) if word.partition("/")[0] in tops and "/" in word]
    missing = [word for word in named if re.fullmatch(r"[\w./]+", word) and not exists(word)]
    assert missing == []


def exists(path: str) -> bool:
    return (ROOT / path).exists()


def test_the_folders_that_the_readme_lists_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    folders = re.findall(r"^\| `([^`]+)` \|", text, flags=re.M)
    assert len(folders) >= 6
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


def test_the_drawing_is_made_of_its_source() -> None:
    source = (ROOT / "docs" / "data_path.dot").read_text(encoding="utf-8")
    labels = re.findall(r'label = "([^"]+)"', source)
    said = [line for label in labels for line in label.split(r"\n")]
    drawing = (ROOT / "docs" / "data_path.svg").read_text(encoding="utf-8")
    drawn = [html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", drawing)]
    assert sorted(drawn) == sorted(said), "run make drawing"
