"""Names are unique: one public class a name in a project, one public thing a name in a package."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BITLANE = ("rtl/bitlane_rtl", "sim/bitlane_sim", "host/bitlane", "boards/bitlane_boards")
CPPSIM = ("cppsim/src/cppsim",)
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


ON_PURPOSE: Mapping[str, str] = {
    "bitlane.arrays.compute": "the public one takes arrays, the one below it their values",
    "bitlane.api.asarray": "the function of bitlane, and that of the array API's namespace",
    "bitlane.demo.load": "each demonstration loads its own model",
    "bitlane.links.open_link": "each kind of link has one, and `link.py` calls the one of a URL",
}
"""Names that two things of one package share, each with the reason."""


def public_names(path: Path) -> set[str]:
    """Return the public classes, functions and type aliases at the top of a module."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(name), annotation=ast.Name("TypeAlias")):
                names.add(name)
            case ast.Assign(targets=[ast.Name(name)]) if name[0].isupper() and not name.isupper():
                names.add(name)
    return {name for name in names if not name.startswith("_")}


def test_no_two_public_things_of_a_package_have_one_name() -> None:
    files: defaultdict[str, list[str]] = defaultdict(list)
    for package in (*BITLANE, *CPPSIM):
        for path in (ROOT / package).rglob("*.py"):
            folder = ".".join(path.relative_to((ROOT / package).parent).parent.parts)
            for name in public_names(path):
                files[f"{folder}.{name}"].append(path.name)
    shared = {name: sorted(paths) for name, paths in files.items() if len(paths) > 1}
    assert shared.keys() == ON_PURPOSE.keys(), {
        name: shared.get(name, "one thing alone") for name in shared.keys() ^ ON_PURPOSE.keys()
    }


def test_no_module_of_one_tree_of_tests_hides_one_of_the_other() -> None:
    """Both trees have a part of the package ``support``; the first on the path would win."""
    trees = [ROOT / "tests" / "support", ROOT / "cppsim" / "tests" / "support"]
    ours, theirs = ({path.relative_to(tree) for path in tree.rglob("*.py")} for tree in trees)
    assert ours
    assert theirs
    assert ours & theirs == set()
