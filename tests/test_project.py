"""The project itself: contents of wheels, allowed imports, pins, and errors of the set-up."""

import ast
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import bitlane
import cppsim

ROOT = Path(__file__).parents[1]
OWN = ("rtl/bitlane_rtl", "sim/bitlane_sim", "host/bitlane", "boards/bitlane_boards")
ALONE = "cppsim/src/cppsim"
PACKAGES = (*OWN, ALONE)
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))


def run(
    *command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` with ``env`` added to the environment; return its result, failed or not."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def built(project: Path, folder: Path) -> zipfile.ZipFile:
    ran = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=project)
    assert ran.returncode == 0, ran.stderr
    [path] = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel_alone(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build the wheel of cppsim, which is a separate project."""
    return built(ROOT / "cppsim", tmp_path_factory.mktemp("wheel_alone"))


def test_the_wheels_hold_the_packages_whole(
    wheel: zipfile.ZipFile, wheel_alone: zipfile.ZipFile
) -> None:
    for package in PACKAGES:
        names = set((wheel_alone if package == ALONE else wheel).namelist())
        folder = ROOT / package
        files = {
            f"{folder.name}/{path.relative_to(folder).as_posix()}"
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert f"{folder.name}/py.typed" in files
        assert files - names == set()


def test_the_links_of_a_wheels_pages_lead_into_it(wheel_alone: zipfile.ZipFile) -> None:
    held = set(wheel_alone.namelist())
    pages = [x for x in held if x.endswith(".md") and x.startswith("cppsim/")]
    broken = []
    for page in pages:
        text = wheel_alone.read(page).decode()
        for link in re.findall(r"\]\(([^)\s:#]+)[^)\s:]*\)", text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
            # The sources are beside the folder of pages, without the folders of a clone.
            if target.replace("cppsim/src/cppsim/", "cppsim/") not in held:
                broken.append((page, link))
    assert {"cppsim/README.md", "cppsim/CHANGELOG.md", "cppsim/docs/differs.md"} < set(pages)
    assert broken == []


def test_the_wheel_holds_the_examples_of_the_demo(wheel: zipfile.ZipFile) -> None:
    held = {
        name.rpartition("/")[2]: wheel.read(name)
        for name in wheel.namelist()
        if name.startswith("bitlane/demo/model_files/")
    }
    files = [path for path in (ROOT / "examples").iterdir() if path.is_file()]
    assert held == {path.name: path.read_bytes() for path in files}
    assert len(held) > 5


def test_the_wheels_hold_nothing_else(wheel: zipfile.ZipFile, wheel_alone: zipfile.ZipFile) -> None:
    versions = {"bitlane": bitlane.__version__, "cppsim": cppsim.__version__}
    for name, each, packages in (("bitlane", wheel, OWN), ("cppsim", wheel_alone, [ALONE])):
        tops = {path.partition("/")[0] for path in each.namelist()}
        info = f"{name}-{versions[name]}.dist-info"
        assert tops == {info, *(Path(package).name for package in packages)}
        licence = each.read(f"{info}/licenses/LICENSE")
        assert licence == (ROOT / "LICENSE").read_bytes()


def needed(wheel: zipfile.ZipFile) -> list[str]:
    """Return the packages that a wheel requires without extras."""
    listed = metadata(wheel).get_all("Requires-Dist", [])
    names = [re.match(r"[\w-]+", x) for x in listed if "extra ==" not in x]
    return [name[0] for name in names if name]


def test_without_extras_bitlane_needs_numpy_alone_and_cppsim_amaranth_too(
    wheel: zipfile.ZipFile, wheel_alone: zipfile.ZipFile
) -> None:
    assert needed(wheel) == ["numpy"]
    assert metadata(wheel)["Version"] == bitlane.__version__
    assert needed(wheel_alone) == ["amaranth", "numpy"]
    asked = [x for x in metadata(wheel).get_all("Requires-Dist", []) if x.startswith("cppsim")]
    assert "cppsim<0.2,>=0.1; extra == 'sim'" in asked
    assert cppsim.__version__.startswith("0.1.")


def test_cppsim_is_described_without_relative_links(
    wheel_alone: zipfile.ZipFile, tmp_path: Path
) -> None:
    """A package index shows nothing but the description; an address makes its links absolute."""
    described = metadata(wheel_alone)
    assert "Framework :: Pytest" in described.get_all("Classifier", [])
    assert {"amaranth", "pytest", "simulator"} <= set(described["Keywords"].lower().split(","))
    assert described["Description-Content-Type"] == "text/markdown"
    assert "What differs from Amaranth" in str(described.get_payload())
    project = tmp_path / "cppsim"
    shutil.copytree(ROOT / "cppsim", project, ignore=shutil.ignore_patterns("tests"))
    with (project / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write('\n[project.urls]\nRepository = "https://example.org/owner/name"\n')
    text = str(metadata(built(project, tmp_path / "wheel")).get_payload())
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert "https://example.org/owner/name/blob/main/cppsim/docs/batches.md" in links
    assert [link for link in links if not link.startswith("https://")] == []


def printed(script: str) -> list[str]:
    """Return the words that ``script`` prints in a new Python, which imports as this one does."""
    ran = run(sys.executable, "-c", script, env={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_the_host_runs_on_numpy_alone() -> None:
    """A user of a board has the standard library, NumPy, and bitlane without its extras."""
    script = (
        "import sys; before = set(sys.modules)\n"
        "import bitlane, bitlane.dml, bitlane.demo.command\n"
        "from bitlane.command_line import cli, info, run\n"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(tops - set(sys.stdlib_module_names)))"
    )
    assert printed(script) == ["bitlane", "bitlane_rtl", "numpy"]


def test_the_names_of_bitlane_load_nothing_that_only_some_need() -> None:
    script = (
        "import sys, bitlane; bitlane.open\n"
        "some = {'amaranth', 'bitlane_boards', 'bitlane_rtl.configuration', 'bitlane_sim',"
        " 'bitlane.command_line', 'bitlane.dml', 'bitlane.links.serial', 'bitlane.model_file',"
        " 'bitlane.validate', 'importlib.metadata', 'json', 'serial', 'subprocess'}\n"
        "print(*sorted(some & set(sys.modules)))"
    )
    assert printed(script) == []


def test_boards_are_found_and_loaded_without_amaranth() -> None:
    """A user of a board has pyserial, but does not build."""
    script = (
        "import sys; sys.modules['amaranth'] = None\n"
        "from bitlane_boards.command_line import devices, flash\n"
        "print(*sorted(devices.boards()))"
    )
    assert "ulx3s" in printed(script)


WRONG = [
    ("host/bitlane/version.py", "import amaranth", "host runs without Amaranth"),
    ("host/bitlane/version.py", "import bitlane_sim", "boards -> sim -> host -> rtl"),
    ("host/bitlane/version.py", "import bitlane_rtl.configuration", "nothing from rtl but abi"),
    ("host/bitlane/driver/queue.py", "import bitlane.lowering.loopnest", "down to the links"),
    ("host/bitlane/arrays/value.py", "import bitlane.streaming.eager", "two engines"),
    ("host/bitlane/dml/types.py", "import bitlane.api.device", "down to the links"),
    ("host/bitlane/dml/buffer.py", "import bitlane.dml.device", "no circle of imports"),
    ("sim/bitlane_sim/system/ports.py", "import bitlane_sim.system.system", "no circle of imports"),
    ("sim/bitlane_sim/system/system.py", "import bitlane_sim.export.folder", "device -> system"),
    ("cppsim/src/cppsim/errors.py", "import bitlane_sim.builds", "cppsim knows Amaranth"),
    ("rtl/bitlane_rtl/abi/codes.py", "import amaranth", "are plain data"),
    ("rtl/bitlane_rtl/stream_configuration.py", "import amaranth", "are plain data"),
    ("rtl/bitlane_rtl/streams/beats.py", "import bitlane", "boards -> sim -> host -> rtl"),
    ("sim/bitlane_sim/pages.py", "import cppsim.model.model", "public modules of cppsim alone"),
    ("boards/bitlane_boards/predicted.py", "import cppsim.batch", "public modules of cppsim alone"),
    ("sim/bitlane_sim/__init__.py", "import bitlane_boards", "boards -> sim -> host -> rtl"),
]
"""Imports that a contract forbids: file, line, and words of the contract's name."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the report of each broken contract by its name, where all of `WRONG` is planted."""
    folder = tmp_path_factory.mktemp("imports")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for file, line, _ in WRONG:
        planted = folder / file
        planted.write_text(planted.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    roots = os.pathsep.join(str((folder / package).parent) for package in PACKAGES)
    script = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    ran = run(sys.executable, "-c", script, cwd=folder, env={"PYTHONPATH": roots})
    assert ran.returncode == 1, ran.stdout + ran.stderr
    _, name, *rest = re.split(
        r"^(.+)\n-+\n\n", ran.stdout.partition("Broken contracts")[2], flags=re.M
    )
    return dict(zip([name, *rest[1::2]], rest[::2], strict=True))


@pytest.mark.parametrize(("file", "line", "contract"), WRONG)
def test_an_import_the_wrong_way_is_caught(
    file: str, line: str, contract: str, broken: dict[str, str]
) -> None:
    [report] = (report for name, report in broken.items() if contract in name)
    module = file.rpartition("src/")[2] if "src/" in file else file.partition("/")[2]
    module = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    imported = line.removeprefix("import ")
    if contract == "no circle of imports":  # names the siblings, without their package
        module, imported = (f".{each.rpartition('.')[2]}" for each in (module, imported))
    assert re.search(rf"{re.escape(module)} -> {re.escape(imported)} ", report)


DOORS = {
    "boards/bitlane_boards/__init__.py": "each board is a file",
    "boards/bitlane_boards/flow/__init__.py": "its names load Amaranth",
    "boards/bitlane_boards/flow/platform.py": "a board names its platform",
    "boards/bitlane_boards/litex/__init__.py": "its names load LiteX",
    "cppsim/src/cppsim/__init__.py": "its names load Amaranth",
    "cppsim/src/cppsim/circuits.py": "its names load Amaranth",
    "host/bitlane/__init__.py": "its names load NumPy",
    "sim/bitlane_sim/campaigns/__init__.py": "its names load cppsim",
    "sim/bitlane_sim/device/__init__.py": "an elaboration executes one of its modules",
    "sim/bitlane_sim/system/__init__.py": "its names load Amaranth",
}
"""Files that import modules of the project by a text, which no contract sees, with the reason."""


def with_any_of(words: Sequence[str], *folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the names and trees of the files whose text has one of ``words``."""
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def test_entry_points_alone_import_our_modules_by_a_text() -> None:
    own = {"", *(Path(package).name for package in PACKAGES)}
    loading = ("import_module", "__import__")
    found = set()
    for name, tree in with_any_of(loading, *PACKAGES):
        for node in ast.walk(tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called.rpartition(".")[2] in loading:
                texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
                if str(next(texts, "")).partition(".")[0] in own:
                    found.add(name)
    assert found == DOORS.keys()


FACE = {"cppsim", *(f"cppsim.{name}" for name in ("build", "circuits", "errors", "stored"))}
"""The modules of cppsim that bitlane imports, as a contract enforces for its packages."""

INSIDE = {
    "tests/rtl/test_core.py": "walks the cells of a netlist",
    "tests/sim/campaigns/test_harness.py": "calls the program of an exported folder",
    "tools/mutants/netlists.py": "compares circuits by the C++ of their trimmed netlists",
    "tools/simulators/verilated.py": "puts Verilator's model in the place of cppsim's",
}
"""Tests that import other modules of cppsim, each with the reason."""


def test_tests_of_bitlane_import_the_public_modules_of_cppsim() -> None:
    found = set()
    for file, tree in with_any_of(["cppsim"], "tests", "tools"):
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
                if node.module == "cppsim":
                    names += [
                        f"cppsim.{x.name}" for x in node.names if x.name not in cppsim.__all__
                    ]
            if any(x.partition(".")[0] == "cppsim" and x not in FACE for x in names):
                found.add(file)
    assert found == INSIDE.keys()


@pytest.mark.parametrize("folder", ["", "cppsim"])
def test_every_dependency_has_its_reason_beside_it(folder: str) -> None:
    text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project.get("dependency-groups", {}).values(),
    ]
    for requirement in (x for group in groups for x in group if isinstance(x, str)):
        assert re.search(rf'"{re.escape(requirement)}",  # \w', text), requirement


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.stem)
def test_pins_are_hashed_and_name_no_place(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*-", re.sub(r"^\s+--hash=sha256:[0-9a-f]{64}", "", text, flags=re.M))
    lines = [line for line in text.splitlines() if re.match(r"\w", line)]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[\w-]+==\S+( ; [^\\]+)? \\", line), line
    assert len(re.findall(r"\\\n    --hash=sha256:", text)) >= len(lines)


def test_the_sets_agree_where_they_meet() -> None:
    pins: dict[str, str] = {}
    for path in REQUIREMENTS:
        for line in path.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"([\w-]+)==(\S+)(.*) \\", line):
                name = found[1] + found[3]
                assert pins.setdefault(name, found[2]) == found[2], name


def fake_python(folder: Path, *, version: str, ensurepip: bool) -> Path:
    """Write a program that answers the queries of the set-up like a Python of ``version``."""
    recent = int(tuple(int(x) for x in version.split(".")) < (3, 11))
    path = folder / "python"
    path.write_text(
        "#!/bin/sh\n"
        f'case "$*" in\n--version) echo "Python {version}" ;;\n'
        f"*version_info*) exit {recent} ;;\n*ensurepip*) exit {int(not ensurepip)} ;;\n"
        "*) exit 1 ;;\nesac\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("version", "ensurepip", "complaint"),
    [
        ("3.10.4", True, "bitlane needs Python 3.11 or later and found Python 3.10.4"),
        ("3.12.1", False, "apt install python3-venv"),
    ],
)
def test_a_python_that_will_not_do_is_told_in_one_line(
    tmp_path: Path, version: str, ensurepip: bool, complaint: str
) -> None:
    python = fake_python(tmp_path, version=version, ensurepip=ensurepip)
    venv = tmp_path / "venv"
    ran = run("sh", "requirements/environment.sh", venv, env={"PYTHON": str(python)})
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert complaint in ran.stderr
    assert not venv.exists()


def test_the_demo_runs_the_bitlane_of_this_folder(tmp_path: Path) -> None:
    """`pip install .` puts a copy into the environment, which changes here do not reach."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    [check] = re.findall(r"^demo:.*\n\t@(.*)\n\t@\$\(BIN\)/bitlane demo\n", text, flags=re.M)
    check = check.replace("$(BIN)/python", sys.executable).replace("$(DEMO_READY)", ".ready")
    copy = tmp_path / "bitlane"
    copy.mkdir()
    (copy / "__init__.py").touch()
    assert run("sh", "-c", check, env={"PYTHONPATH": str(ROOT / "host")}).returncode == 0
    ran = run("sh", "-c", check, env={"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == 1
    assert ran.stderr == (
        f"make demo: bitlane is a copy in {copy};"
        " rm .ready, then make demo installs this folder again\n"
    )


def test_an_interrupted_environment_is_not_left(tmp_path: Path) -> None:
    python = fake_python(tmp_path, version="3.11.0", ensurepip=True)
    venv = tmp_path / "venv"
    venv.mkdir()
    assert run("sh", "requirements/environment.sh", venv, env={"PYTHON": str(python)}).returncode
    assert not venv.exists()


def test_help_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    [phony] = re.findall(r"^\.PHONY: (.*)$", text, flags=re.M)
    shown = re.findall(r"^  make (\w+) ", run("make", "help").stdout, flags=re.M)
    assert sorted(shown) == sorted(set(phony.split()) - {"moved"})


def test_continuous_integration_runs_the_readmes_test_command_and_then_the_rest() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text(encoding="utf-8").split("\n") if "make" in line]
    assert commands == ['make test RECORD="$record"', 'make rest RECORD="$record"']
    assert "\n    make test" in (ROOT / "README.md").read_text(encoding="utf-8")
    alone = {"MAKEFLAGS": ""}  # whatever variables the make that runs this test was given
    rest = run("make", "--dry-run", "rest", "RECORD=some", env=alone).stdout
    assert "--hypothesis-profile full" in rest
    assert "--except-passed some/passed.json --except-known tests cppsim/tests \\\n" in rest
    assert "-m pyright" in rest
    whole = run("make", "--dry-run", "check", env=alone).stdout
    assert all(name in whole for name in ("ruff", "mypy", "lint-imports", "-m pyright"))
    assert "except" not in whole


def test_every_method_of_the_circuit_fits_a_screen() -> None:
    """A method has at most 60 lines, and five parameters besides ``self``."""
    paths = list((ROOT / PACKAGES[0]).rglob("*.py"))
    assert len(paths) > 50
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
                takes = len([each for each in names if each != "self"])
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= 60, f"{path}: {node.name}: {lines} lines"
                assert takes <= 5, f"{path}: {node.name}: {takes} parameters"
