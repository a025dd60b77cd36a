"""Claims of the pages about the code, where the code can confirm them."""

import ast
import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bitlane_rtl.datapath import placement, stages
from support.docs.pages import PAGES, ROOT, name

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


def test_no_page_says_that_all_code_blocks_are_run() -> None:
    """Builds of boards and durations are not compared: see MEASURED in `test_blocks`."""
    claims = re.compile(r"(every|each|all) code blocks?", re.I)
    # The change list keeps its claims about past releases.
    pages = [name(page) for page in PAGES if page.name != "CHANGELOG.md"]
    assert {page: claims.findall(said(page)) for page in pages if claims.search(said(page))} == {}


def test_pages_and_messages_add_an_extra_by_one_command() -> None:
    """`pip install '.[x]'` would replace the editable installation of `make demo` by a copy."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    pages = [page for page in PAGES if page.name != "CHANGELOG.md"]
    code = [
        path
        for folder in ("host", "cppsim/src", "sim", "boards")
        for path in (ROOT / folder).rglob("*.py")
    ]
    added = set()
    for path in (*pages, *code, *(ROOT / "examples").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # An environment without bitlane: the command for all of it.
        new = re.findall(r"'\.\[(\w+)\]'", text)
        assert new == re.findall(r"pip install \./cppsim '\.\[(sim|demo)\]'", text), path
        added |= set(re.findall(r"'bitlane\[(\w+)\]'", text))
    assert (
        {"boards", "compiler", "completion", "litex", "onnx", "onnxruntime", "report"}
        <= added
        <= extras
    )


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


def test_the_generators_that_the_page_names_write_code() -> None:
    """Two of the three generators have one base class."""
    page = said("cppsim/docs/how_it_works.md")
    for file in ("cpp/simulation.py", "model/source.py"):
        assert f"`src/cppsim/{file}`" in page
        text = (CPPSIM / file).read_text(encoding="utf-8")
        assert re.search(r"^from \.(\.cpp\.)?writer import .*\bWriter$", text, re.MULTILINE)
    assert "`src/cppsim/cpp/writer.py`" in page
    batch = Path("batch/source.py")
    assert f"`src/cppsim/{batch}`" in page
    assert "import Writer" not in (CPPSIM / batch).read_text(encoding="utf-8")
