"""Names are unique: no two public classes of a project have the same name."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BITLANE = ("rtl/bitlane_rtl", "sim/bitlane_sim", "host/bitlane", "boards/bitlane_boards")
CPPSIM = ("sim/cppsim",)
"""A separate project, which uses Amaranth's words."""

TWICE: Mapping[str, str] = {
    "Device": "the host's, and DirectML's own word for what it stands before",
    "Port": "the circuit's, which a fault belongs to; the host's is pyserial's",
}
"""Names that two classes of bitlane share, each with the reason."""


@pytest.mark.parametrize(("packages", "twice"), [(BITLANE, TWICE), (CPPSIM, {})])
def test_no_two_public_classes_have_one_name(
    packages: tuple[str, ...], twice: Mapping[str, str]
) -> None:
    files: defaultdict[str, list[str]] = defaultdict(list)
    for package in packages:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files[node.name].append(path.relative_to(ROOT).as_posix())
    shared = {name: sorted(paths) for name, paths in files.items() if len(paths) > 1}
    assert shared.keys() == twice.keys(), {
        name: shared.get(name, "one class alone") for name in shared.keys() ^ twice.keys()
    }
