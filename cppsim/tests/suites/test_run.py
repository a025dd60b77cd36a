"""A planted difference is found and named; processes in the background are counted.

The suite under test is a repository of two tests: one of them passes only without cppsim.
"""

import fcntl
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from suites import run
from suites.measure import PROCESSOR
from suites.suite import NoSuite, Suite, read

TESTS = """
import sys

def test_same():
    assert sys.modules

def test_planted():
    assert "cppsim" not in sys.modules
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Make a clone with one suite; return the table of suites."""
    clone = tmp_path / "clones/small"
    (clone / "tests").mkdir(parents=True)
    (clone / "tests/test_small.py").write_text(TESTS)
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "All"]):
        subprocess.run(["git", "-C", str(clone), *words], check=True)
    head = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    # The commit is tested, and not this.
    (clone / "tests/test_small.py").write_text("def test_same():\n    assert False\n")
    path = tmp_path / "suites.toml"
    path.write_text(
        f"""[[suite]]
name = "small"
repository = "owner/small"
commit = "{commit}"
folder = "tests"
path = ["."]
tests = ["test_small.py"]
requires = ["amaranth"]
"""
    )
    return path


def test_a_planted_difference_is_found(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # each run starts in half the time
    words = [str(file.parent / "clones"), "small", "--file", str(file), "--mode", "always"]
    assert run.main(words) == 1
    title, row, *details = capsys.readouterr().out.splitlines()
    assert title.split()[:4] == ["suite", "tests", "passed", "differ"]
    assert row.split()[:4] == ["small", "2", "1", "1"]
    assert details[:2] == ["small, DIFFERS: test_small::test_planted", "  pysim passed"]
    assert details[2].startswith("  cold  failed: AssertionError: ")
    assert details[3] == details[2].replace("cold", "warm")


def test_a_run_without_results_leaves_the_others(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setitem(run.MODES, "warm", "unknown")
    words = [str(file.parent / "clones"), "--file", str(file), "--mode", "unknown"]
    assert run.main(words) == 2
    output, errors = capsys.readouterr()
    assert output.splitlines()[1].split()[:4] == ["small", "2", "2", "0"]
    assert errors.startswith("warm: small: no results")


def test_a_suite_that_is_not_there_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(file.parent), "--file", str(file)]) == 2
    assert "expected a clone of owner/small" in capsys.readouterr().err


def test_the_packages_of_all_suites_are_listed(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main([str(file.parent), "--file", str(file), "--requires"]) == 0
    assert capsys.readouterr().out == "amaranth\npytest\n"


def test_an_unknown_suite_is_refused_with_those_that_exist(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main([str(file.parent), "large", "--file", str(file)]) == 2
    assert capsys.readouterr().err == "large: not a suite; expected one of small\n"


def test_processes_that_outlive_the_command_are_counted(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    script = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"
    command = [sys.executable, PROCESSOR, tmp_path / "seconds", "20", sys.executable, "-c", script]
    subprocess.run(command, check=True)
    assert float((tmp_path / "seconds").read_text()) > 0.3


def test_a_command_is_ended_at_its_limit(tmp_path: Path) -> None:
    start = time.monotonic()
    ran = subprocess.run([sys.executable, PROCESSOR, tmp_path / "seconds", "1", "sleep", "60"])
    assert ran.returncode == 1
    assert time.monotonic() - start < 30
    assert not (tmp_path / "seconds").exists()


def test_a_command_ends_with_its_caller(tmp_path: Path) -> None:
    held = tmp_path / "held"
    hold = (
        f"import fcntl, time; file = open({str(held)!r}, 'w');"
        " fcntl.flock(file, fcntl.LOCK_EX); time.sleep(60)"
    )
    limited = [sys.executable, str(PROCESSOR), str(tmp_path / "seconds"), "60"]
    command = [*limited, sys.executable, "-c", hold]
    start = f"import subprocess, time; subprocess.Popen({command!r}); time.sleep(60)"
    caller = subprocess.Popen([sys.executable, "-c", start])
    try:
        _wait_until(lambda: _is_held(held))
    finally:
        caller.kill()
        caller.wait()
    _wait_until(lambda: not _is_held(held))


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def _is_held(file: Path) -> bool:
    """Return whether a process holds the lock of ``file``, which the system ends with it."""
    with file.open("a") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_every_suite_names_a_whole_commit() -> None:
    suites = read()
    assert len({suite.name for suite in suites}) == len(suites) == 10
    for suite in suites:
        assert re.fullmatch("[0-9a-f]{40}", suite.commit), suite.name
        assert suite.tests, suite.name
        assert suite.requires, suite.name


def test_a_clone_without_the_commit_is_refused(file: Path, tmp_path: Path) -> None:
    [suite] = read(file)
    other = Suite(**{**vars(suite), "commit": "0" * 40})
    with pytest.raises(NoSuite, match=r"small: fatal: .*0000; expected a clone of owner/small"):
        other.export(file.parent / "clones", tmp_path / "target")
