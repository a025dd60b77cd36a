"""Names of the project are unique, and its files for a forge and an editor are up to date."""

import ast
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import bitlane
from support.processes import succeed

ROOT = Path(__file__).parents[1]
BITLANE = ("rtl/bitlane_rtl", "sim/bitlane_sim", "host/bitlane", "boards/bitlane_boards")
CPPSIM = ("cppsim/src/cppsim",)
"""A separate project, which uses Amaranth's words."""

TWICE: Mapping[str, str] = {
    "Device": "the host's, and DirectML's own word for what it stands before",
    "Port": "the circuit's, which a fault belongs to; the host's is pyserial's",
}
"""Names that two classes of bitlane share, each with the reason."""


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


def expect_unique(found: Iterable[tuple[str, Path]], twice: Mapping[str, str]) -> None:
    """Assert that of the names that are ``found`` in files only those of ``twice`` are shared."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for name, path in found:
        files[name].append(path.relative_to(ROOT).as_posix())
    shared = {name: sorted(paths) for name, paths in files.items() if len(paths) > 1}
    assert shared.keys() == twice.keys(), {
        name: shared.get(name, "one thing alone") for name in shared.keys() ^ twice.keys()
    }


@pytest.mark.parametrize(("packages", "twice"), [(BITLANE, TWICE), (CPPSIM, {})])
def test_no_two_public_classes_have_one_name(
    packages: tuple[str, ...], twice: Mapping[str, str]
) -> None:
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    trees = ((path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths)
    classes = (
        (node.name, path)
        for path, tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    expect_unique(classes, twice)


def test_no_two_public_things_of_a_package_have_one_name() -> None:
    roots = [ROOT / package for package in (*BITLANE, *CPPSIM)]
    things = (
        (".".join([*path.relative_to(root.parent).parent.parts, name]), path)
        for root in roots
        for path in root.rglob("*.py")
        for name in public_names(path)
    )
    expect_unique(things, ON_PURPOSE)


def test_no_module_of_one_tree_of_tests_hides_one_of_the_other() -> None:
    """Both trees have a part of the package ``support``; the first on the path would win."""
    trees = [ROOT / "tests" / "support", ROOT / "cppsim" / "tests" / "support"]
    ours, theirs = ({path.relative_to(tree) for path in tree.rglob("*.py")} for tree in trees)
    assert ours
    assert theirs
    assert ours & theirs == set()


CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def loaded(file: str) -> Any:
    return yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))


def test_the_workflow_runs_what_continuous_integration_runs_and_nothing_else() -> None:
    workflow = loaded(".github/workflows/ci.yml")
    [job] = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert workflow["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as a truth value.
    assert set(workflow[True]) == {"push", "pull_request"}
    [versions] = (x["with"]["python-version"] for x in job["steps"] if "python-version" in str(x))
    project = (ROOT / "pyproject.toml").read_text()
    assert set(versions.split()) == set(re.findall(r":: (3\.\d+)\b", project))
    assert f'requires-python = ">={versions.split()[-1]}"' in project, "the last one is `python`"


STUB = """#!/bin/sh
echo "$1 $MAKEFLAGS$PYTEST_ADDOPTS$SEED${MYPY_CACHE_DIR#"$HOME"}" >> build/ci/ran
[ "$1" = rest ] && {meanwhile}
exit 0
"""
BY = "git -c user.name=a -c user.email=a@b.c commit --quiet --all --allow-empty --message=some"


@pytest.mark.parametrize(
    ("before", "meanwhile", "told"),
    [
        ("true", "true", True),
        ("true", BY, False),
        ("true", f"{{ echo '#' >> .ci/run; {BY}; }}", False),
        ("true", "echo >> new", False),
        ("echo >> new", "rm new", False),
        ("rm -r .git", "true", False),
    ],
)
def test_only_a_commit_that_was_there_from_start_to_end_has_passed(
    tmp_path: Path, before: str, meanwhile: str, told: bool
) -> None:
    for folder in ("bin", "clone/.ci", "clone/build/ci"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bin/make").write_text(STUB.replace("{meanwhile}", meanwhile))
    (tmp_path / "bin/make").chmod(0o755)
    clone = tmp_path / "clone"
    shutil.copy(ROOT / ".ci/run", clone / ".ci")
    (clone / ".gitignore").write_text("build\n")
    made = f"git init --quiet && git add . && {BY} && git rev-parse HEAD && {before}"
    commit = succeed("sh", "-c", made, cwd=clone).strip()
    (clone / "build/ci/passed.json").touch()
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    others = {"MAKEFLAGS": "n", "PYTEST_ADDOPTS": "--co", "SEED": "7", "XDG_CACHE_HOME": ""}
    # A home that cannot be written keeps no types.
    home, types = (tmp_path, "/.cache/bitlane-types") if told else (tmp_path / "bin/make", "")
    succeed(clone / ".ci/run", cwd=tmp_path, PATH=path, HOME=str(home), **others)
    assert (clone / "build/ci/ran").read_text() == f"test {types}\nrest {types}\n"
    assert {path.name for path in (clone / "build/ci").iterdir()} == {"ran"} | (
        {commit} if told else set()
    )


def test_the_hooks_are_local_and_call_make_lint() -> None:
    [repository] = loaded(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == ["make lint"]


def test_the_citation_is_of_this_version() -> None:
    citation = loaded("CITATION.cff")
    assert citation["version"] == bitlane.__version__
    assert citation["license"] == "MIT"
    [date] = re.findall(rf"^## {re.escape(bitlane.__version__)} - (\S+)$", CHANGES, flags=re.M)
    assert str(citation["date-released"]) == date


def test_the_changes_begin_with_what_is_unreleased_and_go_back_in_time() -> None:
    titles = re.findall(r"^## (\S+)", CHANGES, flags=re.M)
    assert titles[0] == "Unreleased"
    assert titles[1] == bitlane.__version__
    numbers = [tuple(int(x) for x in title.split(".")) for title in titles[1:]]
    assert numbers == sorted(numbers, reverse=True)
    kinds = set(re.findall(r"^### (.*)$", CHANGES, flags=re.M))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("suffix", [".py", ".md", ".toml", ".yml"])
def test_files_are_as_the_editors_settings_say(suffix: str) -> None:
    tops = ("rtl", "cppsim", "sim", "host", "boards", "docs", "examples", ".github")
    files = [*ROOT.glob(f"*{suffix}")]
    files += [path for top in tops for path in (ROOT / top).rglob(f"*{suffix}")]
    assert files
    for path in files:
        data = path.read_bytes()
        assert data.endswith(b"\n") or not data, path
        assert not re.search(rb"[ \t\r]+$", data, flags=re.M), path
