"""Tests of stored modules: the files on which their results depend, and when they run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bitlane_sim.builds import CACHE
from support import verdicts
from support.inputs import Inputs, tools, variables
from support.processes import run_python
from support.rotation import REPLAY

pytestmark = [pytest.mark.any_rtl, pytest.mark.any_face, pytest.mark.reads()]

ROOT = Path(__file__).parents[1]

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


COUNTING = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_number(number):
    with Path(os.environ["RAN"]).open("a") as file:
        file.write(f"{number}")
    assert os.environ["FAILS"] != f"{number}"
"""


class Counting:
    """A module that notes which of its tests ran, in a project of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ran = folder / "tests", folder / "ran"
        self._folder.mkdir()
        self.path = self._folder / "test_counting.py"
        self.path.write_text(COUNTING)
        (folder / ".gitignore").write_text("ran\ncache\n__pycache__\n")
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        self._cache = folder / "cache"
        self._cache.mkdir()

    def run(self, *words: str, fails: str = "", again: int = 1 << 255, code: int = 0) -> str:
        """Run it; return which tests ran."""
        self._ran.write_text("")
        (self._cache / "set_up.py").write_text(
            f"import pathlib\nfrom support import known, verdicts\nverdicts.AGAIN = {again}\n"
            f"known.PROJECT = pathlib.Path({str(self._folder.parent)!r})\n"
        )
        ran = run_python(
            *("-m", "pytest", "-p", "set_up", "-p", "no:cacheprovider"),
            *("-c", ROOT / "pyproject.toml", f"--rootdir={self._folder.parent}"),
            "--except-known",
            *words,
            *([] if any("::" in word for word in words) else [self._folder]),
            FAILS=fails,
            RAN=str(self._ran),
            BITLANE_CACHE=str(self._cache),
            PYTHONPATH=os.pathsep.join([*sys.path, str(self._cache)]),
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        self.printed = ran.stdout + ran.stderr
        return self._ran.read_text()


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counting:
    monkeypatch.delenv(REPLAY, raising=False)
    return Counting(tmp_path)


ALL_KNOWN = "no test ran: all selected tests are known to pass"


@pytest.mark.slow
def test_a_module_that_passed_is_left_out_until_it_changes(counting: Counting) -> None:
    assert counting.run() == "12"
    assert "verdicts: modules 1 checked now, 0 known" in counting.printed
    assert counting.run() == ""
    assert "verdicts: modules 0 checked now, 1 known" in counting.printed
    assert ALL_KNOWN in counting.printed
    counting.path.write_text(COUNTING + "# other\n")
    assert counting.run() == "12"


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["1", "2"])
def test_a_module_that_failed_runs_again(counting: Counting, fails: str) -> None:
    assert counting.run(fails=fails, code=1) == "12"
    assert counting.run() == "12"


@pytest.mark.slow
def test_pytest_reports_a_module_that_cannot_be_read(counting: Counting) -> None:
    counting.path.write_bytes(COUNTING.encode() + b"# \xff")
    counting.path.with_name("test_gone.py").symlink_to("nowhere")
    assert counting.run() == "12"
    counting.path.with_name("test_broken.py").write_text("def test_number(:")
    assert counting.run(code=pytest.ExitCode.INTERRUPTED) == ""
    assert "SyntaxError: invalid syntax" in counting.printed
    assert "INTERNALERROR" not in counting.printed


@pytest.mark.slow
def test_an_interrupted_run_stores_nothing(counting: Counting) -> None:
    assert counting.run("-x", fails="2", code=1) == "12"
    assert counting.run("--maxfail=1", fails="1", code=1) == "1"
    assert counting.run() == "12"


@pytest.mark.slow
def test_workers_leave_out_what_the_main_process_knows(counting: Counting) -> None:
    assert sorted(counting.run("-n", "2")) == ["1", "2"]
    assert counting.run("-n", "2") == ""


@pytest.mark.slow
def test_another_choice_of_tests_has_other_verdicts(counting: Counting) -> None:
    assert counting.run() == "12"
    assert counting.run("-m", "not deep") == "12"
    assert counting.run("--hypothesis-profile", "full") == "12"
    assert counting.run("-m", "not deep") == ""


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["REPLAY", "SEED", "SEEDS", "RECOMPUTE"])
def test_who_asks_for_other_cases_gets_them(
    counting: Counting, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "11111111")
    assert counting.run() == "12"
    assert counting.run() == "12"
    monkeypatch.delenv(variable)
    assert counting.run() == "12", "nothing was stored"


@pytest.mark.slow
def test_a_known_module_that_fails_is_named(counting: Counting) -> None:
    counting.run()
    assert counting.run(again=1) == "12"
    assert "modules 1 checked now, 1 of them again, 0 known" in counting.printed
    assert counting.run(again=1, fails="1", code=1) == "12"
    assert "test_counting.py: failed, though it passed before" in counting.printed
    assert counting.run() == "12", "its verdict was removed"


@pytest.mark.slow
def test_the_seconds_of_a_module_are_stored_with_its_verdict(
    counting: Counting, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = "\nimport time\ndef test_long():\n    time.sleep(0.5)\n"
    counting.path.write_text(COUNTING + slow)
    assert counting.run("-n", "2") in ("12", "21")
    monkeypatch.setenv("BITLANE_CACHE", str(tmp_path / "cache"))
    [entry] = CACHE.entries()
    passed = verdicts.stored(entry.folder.name)
    assert passed
    assert passed.seconds >= 0.5


@pytest.mark.slow
def test_what_has_changed_during_a_run_is_not_stored(counting: Counting) -> None:
    changing = "    with Path(__file__).open('a') as file:\n        file.write('# other\\n')\n"
    counting.path.write_text(COUNTING + changing)
    assert counting.run() == "12"
    assert counting.run() == "12"


@pytest.mark.slow
def test_a_module_with_a_skipped_test_runs_again(counting: Counting) -> None:
    counting.path.write_text(COUNTING + "    pytest.skip('no such tool')\n")
    assert counting.run() == "12"
    assert counting.run() == "12"


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["", "PYTEST_ADDOPTS"])
def test_a_run_with_other_options_is_another(
    counting: Counting, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv(variable, "--setup-plan")
    assert counting.run(*([] if variable else ["--setup-plan"])) == "", "tests seem to pass"
    monkeypatch.delenv(variable, raising=False)
    assert counting.run() == "12"


@pytest.mark.slow
def test_a_module_of_which_an_earlier_run_left_less_to_do_runs_again(
    counting: Counting, tmp_path: Path
) -> None:
    passed = tmp_path / "passed.json"
    (tmp_path / ".gitignore").write_text("*.json\nran\ncache\n__pycache__\n")
    words = ("--except-passed", str(passed))
    passed.write_text('["tests/test_counting.py::test_number[1]"]')
    assert counting.run(*words) == "2"
    assert counting.run(*words) == ""
    passed.write_text("[]")
    assert counting.run(*words) == "12"


@pytest.mark.slow
def test_a_run_passes_if_an_earlier_run_left_nothing_to_do(
    counting: Counting, tmp_path: Path
) -> None:
    passed = tmp_path / "passed.json"
    words = ("--except-passed", str(passed))
    passed.write_text('["tests/other/test_other.py::test_other"]')
    counting.path.write_text("")
    counting.run(*words, code=pytest.ExitCode.NO_TESTS_COLLECTED)
    assert ALL_KNOWN not in counting.printed
    counting.path.write_text(COUNTING)
    names = (f"tests/test_counting.py::test_number[{number}]" for number in (1, 2))
    passed.write_text(json.dumps([*names]))
    assert counting.run(*words) == ""
    assert ALL_KNOWN in counting.printed


@pytest.mark.slow
@pytest.mark.parametrize("text", [None, "", "3"])
def test_a_record_that_cannot_be_read_is_told_in_a_line(
    counting: Counting, tmp_path: Path, text: str | None
) -> None:
    passed = tmp_path / "passed.json"
    if text is not None:
        passed.write_text(text)
    counting.run("--except-passed", str(passed), code=pytest.ExitCode.USAGE_ERROR)
    assert re.search(
        r"^ERROR: --except-passed: \S+passed\.json: .*; `make test RECORD=FOLDER` writes it$",
        counting.printed,
        flags=re.M,
    )
    assert "Traceback" not in counting.printed


@pytest.mark.slow
@pytest.mark.parametrize("git", ["none", "ignores it"])
def test_what_git_does_not_know_always_runs(counting: Counting, git: str, tmp_path: Path) -> None:
    if git == "none":
        shutil.rmtree(tmp_path / ".git")
    else:
        (tmp_path / ".gitignore").write_text("*\n")
    for _ in range(2):
        assert counting.run() == "12"


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["BITLANE_DEVICE", "CXXFLAGS", "PYTHONHASHSEED"])
def test_variables_that_tests_obey_count(
    counting: Counting, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counting.run() == "12"
    monkeypatch.setenv(variable, "2")
    assert counting.run() == "12"


@pytest.mark.slow
def test_a_part_of_a_module_is_refused(counting: Counting) -> None:
    usage = pytest.ExitCode.USAGE_ERROR
    assert counting.run("-k", "number", code=usage) == ""
    assert "--except-known: a part of a module; leave out -k" in counting.printed
    assert counting.run(f"{counting.path}::test_number", code=usage) == ""


@pytest.mark.slow
def test_a_limit_that_is_no_number_is_refused_at_once(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BITLANE_CACHE_LIMIT", "much")
    assert counting.run(code=pytest.ExitCode.USAGE_ERROR) == ""
    told = "ERROR: BITLANE_CACHE_LIMIT: 'much' is not a number of MiB; expected 2048"
    assert told in counting.printed
    assert "Traceback" not in counting.printed
