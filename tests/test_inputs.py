"""Tests of the files, programs and variables on which the result of a test module depends."""

import os
import subprocess
from pathlib import Path

import pytest

from support.inputs import Inputs, tools, variables

pytestmark = [pytest.mark.any_rtl, pytest.mark.any_face, pytest.mark.reads()]

FILES = {
    "tests/support/runner.py": "import cppsim",
    "cppsim/tests/support/seeds.py": "import subprocess",
    "tests/support/rtl/benches.py": "from ..models import lanes",
    "tests/support/models/lanes.py": "def later():\n    from bitlane_rtl import abi",
    "tests/support/other.py": "",
    "tools/flips/table.py": "",
    "tools/flips/run.py": "from flips import table",
    "tests/support/suites/chosen.py": "",
    "cppsim/tests/support/zoo.py": "import cppsim",
    "cppsim/tests/conftest.py": "",
    "cppsim/tests/test_zoo.py": "from support.zoo import Counter",
    "cppsim/tests/test_program.py": "import subprocess",
    "cppsim/tests/test_pages.py": "PAGES = __file__",
    "tests/alone/test_alone.py": "from support import other, seeds",
    "tests/tools/test_flips.py": "from flips.run import main",
    "tests/alone/test_named.py": "NAME = f'support.suites.{len([])}'",
    "tests/alone/test_runner.py": "from support.durations import read",
    "tests/rtl/test_unit.py": "import support.rtl.benches",
    "tests/sim/conftest.py": "from cppsim.model import Model",
    "tests/sim/part/test_model.py": "",
    "tests/host/test_driver.py": "import bitlane",
    "tests/host/test_command.py": "from subprocess import run",
    "tests/host/test_tool.py": "import bitlane, pytest\npytestmark = pytest.mark.any_circuit",
    "tests/boards/test_flow.py": "import bitlane, pytest\npytestmark = pytest.mark.any_face",
    "tests/boards/test_tool.py": "import bitlane, pytest\npytestmark = pytest.mark.any_rtl",
    "tests/docs/test_page.py": "PAGE = __file__\npytestmark = pytest.mark.reads('docs/page.md')",
    "tests/docs/test_pages.py": "PAGES = __file__",
    "rtl/bitlane_rtl/abi.py": "",
    "rtl/bitlane_rtl/datapath/writer.py": "",
    "rtl/bitlane_rtl/streams/buffers.py": "",
    "rtl/bitlane_rtl/table.csv": "",
    "cppsim/src/cppsim/code.h": "",
    "sim/bitlane_sim/device.py": "",
    "host/bitlane/driver.py": "",
    "host/bitlane/arrays/array.py": "",
    "docs/page.md": "",
    "pyproject.toml": "",
}
MODULES = [name for name in FILES if "test_" in name]
ALL = set(MODULES)
OF_CPPSIM = "cppsim/tests/test_pages.py"
OF_EVERYTHING = {"tests/docs/test_pages.py", "tests/alone/test_runner.py"}
OF_A_PAGE = "tests/docs/test_page.py"
OF_BOTH = {"tests/host/test_driver.py", "tests/host/test_command.py", OF_A_PAGE, *OF_EVERYTHING}
OF_A_CIRCUIT = {"tests/boards/test_flow.py", *OF_BOTH}
OF_A_STREAM = {"tests/host/test_tool.py", *OF_A_CIRCUIT}
OF_A_FACE = {"tests/host/test_tool.py", "tests/boards/test_tool.py", *OF_BOTH}
OF_THE_PRODUCT = OF_A_CIRCUIT | OF_A_FACE


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


def digests(project: Path) -> dict[str, str]:
    inputs = Inputs(project)
    return {name: inputs.digest(project / name) for name in MODULES}


@pytest.fixture(scope="module")
def before(project: Path) -> dict[str, str]:
    """Return the digests of the project as it is between tests."""
    found = digests(project)
    assert digests(project) == found
    return found


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("tests/alone/test_alone.py", {"tests/alone/test_alone.py", *OF_EVERYTHING}),
        ("tests/support/other.py", {"tests/alone/test_alone.py", *OF_EVERYTHING}),
        ("tools/flips/table.py", {"tests/tools/test_flips.py", *OF_EVERYTHING}),
        ("tests/support/runner.py", ALL),
        (
            "cppsim/tests/conftest.py",
            {"cppsim/tests/test_zoo.py", "cppsim/tests/test_program.py", OF_CPPSIM, *OF_EVERYTHING},
        ),
        (
            "cppsim/tests/support/zoo.py",
            {"cppsim/tests/test_zoo.py", OF_CPPSIM, *OF_EVERYTHING},
        ),
        ("pyproject.toml", ALL),
        ("pytest.ini", ALL),
        ("tests/support/suites/chosen.py", {"tests/alone/test_named.py", *OF_EVERYTHING}),
        ("cppsim/tests/support/seeds.py", ALL),
        ("tests/support/models/lanes.py", {"tests/rtl/test_unit.py", *OF_EVERYTHING}),
        ("rtl/bitlane_rtl/abi.py", {"tests/rtl/test_unit.py", *OF_THE_PRODUCT}),
        ("rtl/bitlane_rtl/datapath/writer.py", {"tests/rtl/test_unit.py", *OF_A_CIRCUIT}),
        ("rtl/bitlane_rtl/streams/buffers.py", {"tests/rtl/test_unit.py", *OF_A_STREAM}),
        ("rtl/bitlane_rtl/table.csv", {"tests/rtl/test_unit.py", *OF_THE_PRODUCT}),
        (
            "cppsim/src/cppsim/code.h",
            {
                *("tests/sim/part/test_model.py", "cppsim/tests/test_zoo.py"),
                *("cppsim/tests/test_program.py", OF_CPPSIM, *OF_THE_PRODUCT),
            },
        ),
        ("sim/bitlane_sim/device.py", OF_THE_PRODUCT),
        ("host/bitlane/driver.py", OF_THE_PRODUCT),
        ("host/bitlane/arrays/array.py", OF_A_FACE),
        ("docs/page.md", {OF_A_PAGE, *OF_EVERYTHING}),
        ("new.txt", OF_EVERYTHING),
    ],
)
def test_a_module_depends_on_what_it_imports(
    project: Path, before: dict[str, str], changed: str, expected: set[str]
) -> None:
    path = project / changed
    with path.open("a") as file:
        file.write("# other\n")
    after = digests(project)
    if changed in FILES:
        path.write_text(FILES[changed] + "\n")
    else:
        path.unlink()
    assert {name for name in MODULES if before[name] != after[name]} == expected


def test_what_a_module_says_that_it_reads_is_there(project: Path) -> None:
    page = "docs/page.md"
    (project / page).unlink()
    with pytest.raises(ValueError, match=r"test_page\.py: .* names \['docs/page\.md'\]"):
        digests(project)
    (project / page).write_text(FILES[page] + "\n")


def test_a_module_depends_on_the_versions_of_all_tools(
    project: Path, before: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.inputs.tools", lambda: ["yosys 2"])
    assert not set(before.values()) & set(digests(project).values())


def test_a_file_counts_though_its_name_is_not_utf_8(project: Path, before: dict[str, str]) -> None:
    path = project / os.fsdecode(b"docs/\xff")
    path.touch()
    after = digests(project)
    path.unlink()
    assert {name for name in MODULES if before[name] != after[name]} == OF_EVERYTHING


def test_an_imported_file_counts_though_git_ignores_it(project: Path, tmp_path: Path) -> None:
    helper, ignored = project / "tests/support/other.py", project / ".git/info/exclude"
    found = set[str]()
    for text in ("", "# other"):
        ignored.write_text("other.py\ntest_named.py\n")
        helper.write_text(text)
        inputs = Inputs(project)
        found.add(inputs.digest(project / "tests/alone/test_alone.py"))
        assert not inputs.knows(project / "tests/alone/test_named.py")
    ignored.write_text("")
    helper.write_text(FILES["tests/support/other.py"] + "\n")
    assert len(found) == 2


def test_a_file_that_becomes_executable_or_tracked_is_another(
    project: Path, before: dict[str, str]
) -> None:
    name = "docs/page.md"
    (project / name).chmod(0o755)
    executable = digests(project)
    (project / name).chmod(0o644)
    subprocess.run(["git", "add", name], cwd=project, check=True)
    tracked = digests(project)
    subprocess.run(["git", "rm", "--quiet", "--cached", name], cwd=project, check=True)
    for after in (executable, tracked):
        changed = {name for name in MODULES if before[name] != after[name]}
        assert changed == {OF_A_PAGE, *OF_EVERYTHING}
    assert digests(project) == before


@pytest.mark.parametrize(
    ("mark", "holds"),
    [
        ("pytestmark = [pytest.mark.any_face]", True),
        ("@pytest.mark.any_face\ndef test_one(): pass", False),
        ("ONE = pytest.param(1, marks=pytest.mark.any_face)", False),
    ],
)
def test_a_mark_of_one_test_is_none_of_the_module(project: Path, mark: str, holds: bool) -> None:
    module = project / "tests/host/test_driver.py"
    module.write_text(f"import bitlane, pytest\n{mark}\n")
    found = set[str]()
    for text in ("# other", "\n"):
        (project / "host/bitlane/arrays/array.py").write_text(text)
        found.add(Inputs(project).digest(module))
    module.write_text(FILES["tests/host/test_driver.py"] + "\n")
    assert len(found) == (1 if holds else 2)


def test_names_that_are_computed_are_refused(project: Path) -> None:
    module = project / "tests/host/test_driver.py"
    module.write_text("PAGES = ()\npytestmark = pytest.mark.reads(*PAGES)\n")
    with pytest.raises(ValueError, match=r"reads\(\*PAGES\); expected names in quotes"):
        Inputs(project).digest(module)
    module.write_text(FILES["tests/host/test_driver.py"] + "\n")


@pytest.mark.parametrize("name", ["bash", "iverilog", "openFPGALoader"])
def test_another_version_of_a_program_counts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / name
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = set[str]()
    for text in ("one", "other"):
        program.write_text(text)
        program.chmod(0o755)
        found |= {each for each in tools() if each.startswith(f"{name} ")}
    assert len(found) == 2


@pytest.mark.parametrize(
    "name", ["COCOTB_RANDOM_SEED", "DASK_CONFIG", "HYPOTHESIS_NO_PLUGINS", "PYTEST_TIMEOUT"]
)
def test_a_variable_that_a_library_of_tests_obeys_counts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    assert f"{name}=1" in variables()
