"""The package as others see it: public modules, pages, and nothing from outside its folder."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cppsim
from cppsim import stored
from cppsim.mode import Mode
from cppsim.testing import EXECUTORS
from support.processes import run_python
from support.small import foreign, loop
from support.zoo import Counter

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
FOLDERS = ("src", "tests", "examples", "benchmarks", "tools")
WITHOUT_AMARANTH = ("cppsim", "cppsim.build", "cppsim.circuits", "cppsim.stored")


@pytest.mark.parametrize("name", [*WITHOUT_AMARANTH, "cppsim.testing"])
def test_all_names_of_a_module_exist_and_no_others(name: str) -> None:
    module = import_module(name)
    assert all(hasattr(module, each) for each in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("name", [*WITHOUT_AMARANTH, "cppsim.errors"])
def test_a_module_is_imported_without_amaranth(name: str) -> None:
    code = f"import sys, {name}; print('amaranth' in sys.modules)"
    assert run_python("-c", code).stdout == "False\n"


def test_testing_imports_no_runner_of_tests() -> None:
    code = "import sys, cppsim.testing; print(*{'pytest', 'hypothesis', 'numpy'} & {*sys.modules})"
    assert run_python("-c", code).stdout == "\n"


def test_a_stored_design_has_what_a_batch_has() -> None:
    program = cppsim.Program().set("by", 3).step(5).get("count")
    batch = cppsim.Batch(Counter(), 3, "threads:1")
    design = stored.store(Counter())
    assert design.source().description.ports == batch.description.ports
    found = stored.Runner(design, 3, "threads:1").run(program)["count"]
    assert np.array_equal(found, batch.run(program)["count"])
    assert set(found.tolist()) == {15}


# --- pages, whose code blocks tests/docs runs -----------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
def test_every_mode_is_explained(mode: Mode) -> None:
    assert f"| `{mode.value}` |" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(loop, "Combinational cycle"), (foreign, "Instance is not known here: 'CELL' at ")],
)
def test_what_is_not_compiled_is_listed_with_its_line(make: Any, reason: str) -> None:
    with pytest.warns(cppsim.FallbackWarning) as warned:
        made: list[Any] = [cppsim.Simulator(make(), mode="always"), EXECUTORS["engine"](make())]
    assert warned[0].filename == __file__
    page = (ROOT / "docs" / "differs.md").read_text(encoding="utf-8")
    listed = tuple(row.split("`")[1] for row in page.splitlines() if "| `" in row)
    for warning, simulator in zip(warned, made, strict=True):
        text = str(warning.message).removeprefix("left to Amaranth's simulator: ")
        assert text.startswith(reason)
        assert text.startswith(listed)
        assert reason in simulator._engine.reason


def test_no_link_of_a_page_leads_out_of_the_folder() -> None:
    broken = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s:#]+)[^)\s:]*\)", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            if not target.exists() or not target.is_relative_to(ROOT):
                broken.append((page.name, link))
    assert len(PAGES) > 4
    assert broken == []


# --- no package of bitlane ------------------------------------------------------------------------


def imported(path: Path) -> Iterator[str]:
    """Yield the packages that a file imports, on any line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def test_nothing_imports_bitlane() -> None:
    files = [path for name in FOLDERS for path in (ROOT / name).rglob("*.py")]
    assert len(files) > 150
    found = {path: {x for x in imported(path) if x.startswith("bitlane")} for path in files}
    assert {path.relative_to(ROOT): names for path, names in found.items() if names} == {}
