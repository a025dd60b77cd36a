"""Tests of stored modules: when they run, and when they are left out."""

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
from support.inputs import Inputs
from support.processes import run_python
from support.rotation import REPLAY

pytestmark = [pytest.mark.any_rtl, pytest.mark.any_face, pytest.mark.reads()]

ROOT = Path(__file__).parents[1]

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

    def record(self, *passed: str) -> tuple[str, str]:
        """Write a record of the tests that ``passed``; return the option that names it."""
        project = self._folder.parent
        path = project / "passed.json"
        record = {"files": Inputs(project).of_everything({path}), "passed": passed}
        path.write_text(json.dumps(record))
        return "--except-passed", str(path)

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
def test_a_module_of_which_an_earlier_run_left_less_to_do_runs_again(counting: Counting) -> None:
    words = counting.record("tests/test_counting.py::test_number[1]")
    assert counting.run(*words) == "2"
    assert counting.run(*words) == ""
    assert counting.run(*counting.record()) == "12"


@pytest.mark.slow
def test_a_run_passes_if_an_earlier_run_left_nothing_to_do(counting: Counting) -> None:
    counting.path.write_text("")
    words = counting.record("tests/other/test_other.py::test_other")
    counting.run(*words, code=pytest.ExitCode.NO_TESTS_COLLECTED)
    assert ALL_KNOWN not in counting.printed
    counting.path.write_text(COUNTING)
    names = (f"tests/test_counting.py::test_number[{number}]" for number in (1, 2))
    assert counting.run(*counting.record(*names)) == ""
    assert ALL_KNOWN in counting.printed


@pytest.mark.slow
def test_a_record_of_other_files_is_refused(counting: Counting, tmp_path: Path) -> None:
    path = str(tmp_path / "passed.json")
    assert counting.run("--store-passed", path) == "12"
    assert counting.run("--except-passed", path) == ""
    (tmp_path / "data.txt").touch()
    assert counting.run("--except-passed", path, code=pytest.ExitCode.USAGE_ERROR) == ""
    assert re.search(
        r"^ERROR: --except-passed: \S+passed\.json: files of the project have changed since then;",
        counting.printed,
        flags=re.M,
    )


@pytest.mark.slow
@pytest.mark.parametrize("text", [None, "", "3", "{}"])
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
