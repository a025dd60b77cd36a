"""A planted difference is found and named; processes in the background are counted.

The suite under test is a repository of two tests: one of them passes only without cppsim.
"""

import fcntl
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from suites import run
from suites.suite import PROCESSOR, NoSuite, Outcome, Run, Runner, Suite, read

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
        f"""[small]
repository = "owner/small"
commit = "{commit}"
folder = "tests"
tests = ["test_small.py"]
requires = ["amaranth"]
"""
    )
    return path


def test_a_planted_difference_is_found(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # each run starts in half the time
    words = [str(file.parent / "clones"), "small", "--file", str(file), "--jobs", "2"]
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
    def of_one_test(runner: Runner, options: Sequence[str] = (), cache: object = None) -> Run:
        return (
            real(runner, options) if "--cppsim=unknown" in options else Run({"one": PASSED}, 1, [])
        )

    real = Runner.run
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(Runner, "run", of_one_test)
    monkeypatch.setitem(run.MODES, "warm", "unknown")
    assert run.main([str(file.parent / "clones"), "--file", str(file)]) == 2
    output, errors = capsys.readouterr()
    assert output.splitlines()[1].split()[:4] == ["small", "1", "1", "0"]
    assert errors.startswith("warm: small: no results")


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        ([], 2, "suite ", "expected a clone of owner/small"),
        (["large"], 2, "", "large: not a suite; expected one of small\n"),
        (["--requires"], 0, "amaranth\npytest\n", ""),
    ],
    ids=["no clone", "unknown", "packages"],
)
def test_words_that_run_no_suite(
    words: list[str], code: int, out: str, err: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main([str(file.parent), *words, "--file", str(file)]) == code
    printed = capsys.readouterr()
    assert printed.out.startswith(out)
    assert err in printed.err


def test_a_missing_clone_is_fetched_at_its_commit(file: Path) -> None:
    [suite] = read(file)
    source, clones = file.parent / "clones", file.parent / "fetched"
    clones.mkdir()
    there = Suite(**{**vars(suite), "repository": "small"})
    there.clone_from(f"{source}/", clones)
    there.clone_from("nowhere/", clones)  # it is there
    folder = there.export(clones, file.parent / "target")
    assert (folder / "test_small.py").read_text() == TESTS
    with pytest.raises(NoSuite, match=r"small: .*nowhere/owner/small"):
        suite.clone_from("nowhere/", file.parent)
    assert not (file.parent / "small").exists()
    other = Suite(**{**vars(suite), "commit": "0" * 40})
    with pytest.raises(NoSuite, match=r"small: fatal: .*0000; expected a clone of owner/small"):
        other.export(source, file.parent / "other")
    shutil.rmtree(source / "small/.git")  # a copy without git is taken as it is
    folder = suite.export(source, file.parent / "copy")
    assert (folder / "test_small.py").read_text() == "def test_same():\n    assert False\n"


PASSED, FAILED = Outcome("passed"), Outcome("failed", "Because")


def test_the_sums_of_a_group_are_of_its_suites(file: Path) -> None:
    [suite] = read(file)
    base = Run({"one": PASSED, "two": PASSED}, 10.0, [])
    same = Run({"one": PASSED, "two": PASSED}, 5.0, [])
    other = Run({"one": PASSED, "two": FAILED}, 2.0, [])
    compared = [
        run.Comparison(
            Suite(**{**vars(suite), "group": group}), {run.PYSIM: base, "cold": same, "warm": warm}
        )
        for group, warm in (("all", other), ("alone", same), ("all", same))
    ]
    [line] = run.sums(compared)
    assert line.split() == ["all", "4", "3", "1", "20.0", "10.0", "(0.50)", "7.0", "(0.35)"]


class _Faster(Runner):
    """Says that it took a second less than the time before."""

    taken: ClassVar = 9.0

    def run(self, options: Sequence[str] = (), cache: Path | None = None) -> Run:
        _Faster.taken -= 1
        return Run({"one": PASSED}, self.taken, [])


def test_a_suite_is_repeated_and_the_best_round_counts(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [suite] = read(file)
    monkeypatch.setattr(run, "monotonic", iter([0.0, 1.0, 2.0]).__next__)
    found = run.compare(_Faster(suite, tmp_path, [], Path("python"), 9), 1.5)
    # The first run is not measured; the round that begins at 1 s is the last.
    seconds = {name: each.seconds for name, each in found.runs.items()}
    assert seconds == {"pysim": 4, "cold": 3, "warm": 2}


def test_of_two_rounds_the_failure_and_the_fewer_seconds_count() -> None:
    first = Run({"one": PASSED, "two": FAILED, "three": PASSED}, 5.0, ["summary"])
    second = Run({"one": PASSED, "two": PASSED}, 4.0, [])
    both = {"one": PASSED, "two": FAILED, "three": Outcome("missing")}
    assert first.with_round(second) == Run(both, 4.0, ["summary"])


def limited(seconds: Path, limit: int, *command: str | Path) -> list[str]:
    return [sys.executable, str(PROCESSOR), str(seconds), str(limit), *map(str, command)]


def test_processes_that_outlive_the_command_are_counted(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    script = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"
    command = limited(tmp_path / "seconds", 20, sys.executable, "-c", script)
    subprocess.run(command, check=True)
    assert float((tmp_path / "seconds").read_text()) > 0.3


def test_a_command_is_ended_at_its_limit(tmp_path: Path) -> None:
    start = time.monotonic()
    ran = subprocess.run(limited(tmp_path / "seconds", 1, "sleep", "60"))
    assert ran.returncode == 1
    assert time.monotonic() - start < 30
    assert not (tmp_path / "seconds").exists()


def test_a_command_ends_with_its_caller(tmp_path: Path) -> None:
    held = tmp_path / "held"
    hold = (
        f"import fcntl, time; file = open({str(held)!r}, 'w');"
        " fcntl.flock(file, fcntl.LOCK_EX); time.sleep(60)"
    )
    command = limited(tmp_path / "seconds", 60, sys.executable, "-c", hold)
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
    assert len({suite.name for suite in suites}) == len(suites)
    assert sum(suite.group == "all" for suite in suites) == 10
    for suite in suites:
        assert re.fullmatch("[0-9a-f]{40}", suite.commit), suite.name
        assert suite.tests, suite.name
        assert suite.requires, suite.name
