"""The pages: links lead somewhere, lines fit a terminal, words, messages and claims are the code's.

Nothing is fetched.
"""

import ast
import html
import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from bitlane_rtl.datapath import placement, stages
from support.docs.pages import PAGES, ROOT, anchors, blocks, code_words, links, name

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
    files = [word for word in named if re.fullmatch(r"[\w./]+", word)]
    assert [word for word in files if not (ROOT / word).exists()] == []


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


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")

ENTRIES = dict(re.findall(r"^- \*\*([^*]+)\*\*: ((?:.+\n)+?)(?=-|\n|\Z)", GLOSSARY, flags=re.M))

NAMES = {word: re.findall(r"`([a-z_]+\.[\w.]+)`", text) for word, text in ENTRIES.items()}

GENERATED = {"performance.md", "registers.md"}
"""Pages of reference that programs write; the pages that lead to them explain the words."""

EXPLAINED = [
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


def test_no_word_has_two_entries_and_a_wrong_name_is_found() -> None:
    words = re.findall(r"^- \*\*([^*]+)\*\*", GLOSSARY, flags=re.M)
    assert len(words) == len(set(words)) >= 30
    assert words == list(ENTRIES)
    with pytest.raises(ImportError):
        found("bitlane_rtl.streams.fifo.Queue")


@pytest.mark.parametrize("page", EXPLAINED, ids=name)
def test_each_page_leads_to_the_glossary(page: Path) -> None:
    assert any(link.endswith("glossary.md") for link in links(page))


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


CPPSIM = ROOT / "cppsim" / "src" / "cppsim"

INTERNALS = "amaranth_internals.py"

OWN = {"_advance", "_items", "_name", "_report"}
"""Private attributes of cppsim and ctypes that other code may read."""


def said(page: str) -> str:
    """Return the text of a page as a single line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("module", [stages, placement], ids=["stages", "placement"])
def test_the_page_shows_the_tables_of_the_circuit(module: ModuleType) -> None:
    """A literal block of the docstring is a block of the page."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = [block.strip("\n") for block in re.findall(r"```text\n(.*?)```", page, flags=re.S)]
    doc = inspect.getdoc(module) + "\n"
    literal = re.findall(r"::\n\n((?: {2,}.*\n|\n)+)", doc)
    assert literal
    assert {textwrap.dedent(block).strip("\n") for block in literal} <= set(shown)


def test_the_unit_that_retires_is_drawn_to_retire() -> None:
    source = (ROOT / "docs" / "data_path.dot").read_text(encoding="utf-8")
    labels = dict(re.findall(r'(\w+) \[label = "([^"]+)"', source))
    units = {"sequencer": "control/sequencer.py", "writer": "datapath/writer.py"}
    folder = ROOT / "rtl" / "bitlane_rtl"
    sources = {unit: (folder / file).read_text(encoding="utf-8") for unit, file in units.items()}
    (unit,) = (unit for unit, text in sources.items() if re.search(r'"retire":\s*Out\(', text))
    assert [name for name, label in labels.items() if "retires" in label] == [unit]


def test_the_page_states_the_bounds_of_the_bounded_proofs() -> None:
    """No contract of these is proven for all time."""
    bounds = set()
    for path in (ROOT / "tests" / "formal").glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        depths = dict(re.findall(r"^(\w+) = (\d+)$", text, flags=re.M))
        if path.name != "test_prover.py":
            bounds |= {int(depths.get(x, x)) for x in re.findall(r"\bBounded\((\w+)\)", text)}
    page = said("docs/architecture.md").partition("Formal proofs of")[2].partition("- ")[0]
    assert bounds == {int(x) for x in re.findall(r"\d+", page)}
    assert f"bounded to {max(bounds)} cycles, and random" in said("docs/architecture.md")


def test_the_tools_of_the_figures_are_those_that_are_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", pins, flags=re.MULTILINE))
    listed = said("docs/boards.md").partition("Those of bitlane's pages are of ")[2]
    tools = dict(re.findall(r"([\w-]+) (\d[\w.]*)", listed.partition(", which")[0]))
    names = {re.split(r"[\[<>=]", each)[0] for each in project["optional-dependencies"]["boards"]}
    assert set(tools) == names - {"amaranth-boards", "bitlane"}
    assert tools == {name: pinned[name] for name in tools}


def test_amaranths_private_parts_are_used_where_the_page_says() -> None:
    listed = said("cppsim/docs/how_it_works.md").partition("private modules of Amaranth")[2]
    files = set(re.findall(r"`src/cppsim/([\w/]+\.py)`", listed.partition("Tests run")[0]))
    trees = {
        path.relative_to(CPPSIM).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(CPPSIM.rglob("*.py"))
    }
    assert [file for file, tree in trees.items() if any(private_imports(tree))] == [INTERNALS]
    assert {file for file, tree in trees.items() if any(foreign(tree))} - {INTERNALS} == files


def private_imports(tree: ast.Module) -> Iterator[str]:
    """Yield the private modules of Amaranth that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("amaranth"):
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
            yield from (each for each in names if each.startswith("_"))


def foreign(tree: ast.Module) -> Iterator[str]:
    """Yield the private attributes of other objects that a file reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr):
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            if of not in ("cls", "os", "self", "sys") and node.attr not in OWN:
                yield node.attr
