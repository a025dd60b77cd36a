"""One word, one thing: no two public classes of the packages have the same name."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "rtl/bitlane_rtl",
    "sim/cppsim",
    "sim/bitlane_sim",
    "host/bitlane",
    "boards/bitlane_boards",
)

TWICE: Mapping[str, str] = {
    "Device": "the host's, and DirectML's own word for what it stands before",
    "Engine": "the circuit's, and Amaranth's word for what runs a simulation",
    "Port": "the circuit's, which a fault belongs to; the host's is pyserial's",
}
"""Names that two classes share, and why they may."""


def test_no_two_public_classes_have_one_name() -> None:
    files: defaultdict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files[node.name].append(path.relative_to(ROOT).as_posix())
    shared = {name: sorted(paths) for name, paths in files.items() if len(paths) > 1}
    assert shared.keys() == TWICE.keys(), {
        name: shared.get(name, "one class alone") for name in shared.keys() ^ TWICE.keys()
    }
