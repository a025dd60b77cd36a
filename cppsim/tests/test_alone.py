"""The project needs nothing outside its folder: no package of bitlane, and no page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
FOLDERS = ("src", "tests", "examples", "benchmarks", "tools")


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
    found = {
        path: {name for name in imported(path) if name.startswith("bitlane")} for path in files
    }
    assert {path.relative_to(ROOT): names for path, names in found.items() if names} == {}


def test_no_link_of_a_page_leads_out_of_the_folder() -> None:
    broken = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s:#]+)[^)\s:]*\)", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            if not target.exists() or not target.is_relative_to(ROOT):
                broken.append((page.name, link))
    assert len(PAGES) > 4
    assert broken == []
