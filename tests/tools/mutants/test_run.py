"""The tests catch one change and miss another, which survives; no change is left behind.

The project under test has a circuit of one function.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mutants import run
from mutants.changes import Change
from mutants.equivalent import Equivalent
from mutants.finders import changes
from mutants.packages import PACKAGES, Package
from mutants.run import Answer, Answers, Outcome, judge, report
from mutants.workplace import FOLDERS, NoAnswer, Workplace

pytestmark = pytest.mark.slow

RTL, HOST = PACKAGES["rtl"], PACKAGES["host"]
PACKAGE = RTL.folder

UNIT = "def total(a, b):\n    return a + b * 0\n"
TESTS = "from bitlane_rtl.unit import total\n\ndef test_total():\n    assert total(2, 3) == 2\n"
CRASH = "import os\n\ndef test_it():\n    os.abort()\n"
SLOW = "import pytest\npytestmark = pytest.mark.slow\n" + TESTS
PROFILES = """from hypothesis import settings

for name in ("quick", "full"):
    settings.register_profile(name)
"""
HOLDS = """import fcntl, sys, time

held = open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_EX)
print(flush=True)
time.sleep(600)
"""
STARTS = """import subprocess, sys

def test_it():
    assert not sys.dont_write_bytecode
    program = [sys.executable, "-c", {program!r}, {lock!r}]
    subprocess.Popen(program, stdout=subprocess.PIPE).stdout.readline()
"""
HANGS = "import time\n\ndef test_it():\n    time.sleep(60)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in (PACKAGE, *FOLDERS):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nmarkers = ["slow", "deep"]\n'
    )
    (tmp_path / "README.md").touch()
    (tmp_path / PACKAGE / "__init__.py").touch()
    (tmp_path / PACKAGE / "unit.py").write_text(UNIT)
    (tmp_path / "tests/test_total.py").write_text(TESTS)
    (tmp_path / "tests/conftest.py").write_text(PROFILES)
    (tmp_path / "tests/test_slow.py").write_text(SLOW)
    (tmp_path / "tests/test_crash.py").write_text(CRASH)
    (tmp_path / "tests/test_hangs.py").write_text(HANGS)
    return tmp_path


@pytest.fixture
def place(project: Path) -> Iterator[Workplace]:
    place = Workplace(project, RTL, deadline=30)
    yield place
    place.close()


def change(summary: str) -> Change:
    [found] = (each for each in changes(UNIT, "unit.py") if each.summary == summary)
    return found


@pytest.mark.parametrize(
    ("tier", "by"), [("full", "tests/test_slow.py::test_total"), ("quick", "")]
)
def test_the_quick_tier_runs_no_slow_test(project: Path, tier: str, by: str) -> None:
    place = Workplace(project, RTL, deadline=30, tier=tier)
    with place.changed(change("b * 0 -> (b + 0)")):
        assert place.fails(["tests/test_slow.py"]) == by
    place.close()


def test_a_test_that_notices_a_change_is_named(place: Workplace, project: Path) -> None:
    with place.changed(change("a + b * 0 -> (a - b * 0)")):
        assert place.fails(["tests/test_total.py"]) == ""
    with place.changed(change("b * 0 -> (b + 0)")):
        assert place.fails(["tests/test_total.py"]) == "tests/test_total.py::test_total"
        assert (project / PACKAGE / "unit.py").read_text() == UNIT
        assert not place.pass_unchanged([], "tests/test_total.py::test_total")
    assert place.pass_unchanged([], "tests/test_total.py::test_total")


def test_a_crash_is_told_and_has_to_be_the_changes_own(place: Workplace) -> None:
    crash, total = ["tests/test_crash.py"], ["tests/test_total.py"]
    assert place.fails(crash) == "exit code -6"
    assert not place.pass_unchanged(crash, "exit code -6")
    assert place.pass_unchanged(total, "exit code -6")


def test_a_process_that_ends_before_its_tests_do_has_not_passed(
    place: Workplace,
) -> None:
    (place._folder / "tests/test_leaves.py").write_text(CRASH.replace("abort()", "_exit(0)"))
    assert place.fails(["tests/test_leaves.py"]) == "exit code 0"


def test_a_change_that_breaks_what_all_tests_import_is_noticed(place: Workplace) -> None:
    (place._folder / "tests/conftest.py").write_text("raise ValueError\n")
    assert place.fails(["tests/test_total.py"]) == "exit code 4"
    assert not place.pass_unchanged(["tests/test_total.py"], "exit code 4")


def test_tests_that_do_not_end_are_given_up(project: Path) -> None:
    place = Workplace(project, RTL, deadline=2)
    assert place.fails(["tests/test_hangs.py"]) == "deadline"
    place.close()


@pytest.mark.timeout(60)
def test_a_program_that_a_test_started_ends_with_the_test(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test sees that compiled sources are stored, whatever the caller's environment says."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    lock = project / "lock"
    starts = STARTS.format(program=HOLDS, lock=str(lock))
    (project / "tests/test_starts.py").write_text(starts)
    place = Workplace(project, RTL, deadline=30)
    assert place.fails(["tests/test_starts.py"]) == ""
    place.close()
    with lock.open() as free:
        fcntl.flock(free, fcntl.LOCK_EX)  # waits for the program's end


@pytest.mark.timeout(60)
def test_a_process_of_forks_that_is_ended_takes_the_fork_along(tmp_path: Path) -> None:
    lock, program = tmp_path / "lock", tmp_path / "holds.py"
    program.write_text(HOLDS)
    with subprocess.Popen(
        [sys.executable, "-m", "mutants.forks"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        stdin=subprocess.PIPE,
    ) as forks:
        assert forks.stdin is not None
        forks.stdin.write(json.dumps([600, "holds", str(lock)]).encode() + b"\n")
        forks.stdin.flush()
        while not (lock.exists() and not free(lock)):
            time.sleep(0.01)
        forks.terminate()
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits for the fork's end


def free(lock: Path) -> bool:
    """Return whether no process holds ``lock``."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_tests_that_do_not_exist_are_no_answer(place: Workplace) -> None:
    with pytest.raises(NoAnswer, match=r"test_nothing\.py"):
        place.fails(["tests/test_nothing.py"])


class Place:
    """A stand-in for a `Workplace`; ``asked`` lists the requests of `judge` in order."""

    def __init__(self, *failing: str, same: bool = False, package: Package = RTL) -> None:
        self.package = package
        self.warmed: list[str] = []
        self.asked: list[str] = []
        self.broken: list[str] = []
        self._failing = failing
        self._same = same

    def warm_up(self, file: str, tests: Sequence[str]) -> None:
        self.warmed.append(file)

    def changed(self, change: Change) -> AbstractContextManager[None]:
        return nullcontext()

    def fails(self, tests: Sequence[str]) -> str:
        self.asked += tests
        return next((test for test in tests if test in self._failing), "")

    def pass_unchanged(self, tests: Sequence[str], by: str) -> bool:
        assert by in tests
        return by not in self.broken

    def has_same_netlists(self, file: str) -> bool:
        self.asked.append("netlists")
        return self._same


ADDED = change("a + b * 0 -> (a - b * 0)")


@pytest.mark.parametrize("failing", ["own", "whole"])
def test_a_change_is_caught_by_the_first_test_that_fails(failing: str) -> None:
    moved = replace(ADDED, file="addresses/bursts.py")
    own, whole = RTL.own_tests(moved.file), RTL.whole_tests(moved.file)
    place = Place({"own": own, "whole": whole}[failing][0])
    answer = judge(moved, place, [])
    assert (answer.outcome, answer.by) == (Outcome.CAUGHT, (own if failing == "own" else whole)[0])
    assert place.asked == (own if failing == "own" else [*own, "netlists", *whole])


def test_a_test_that_always_fails_is_no_answer() -> None:
    place = Place(*RTL.whole_tests(ADDED.file))
    place.broken += RTL.whole_tests(ADDED.file)
    with pytest.raises(NoAnswer, match="fails without any change"):
        judge(ADDED, place, [])


def test_a_change_that_no_test_notices_survives() -> None:
    answer = judge(ADDED, Place(), [])
    assert answer.outcome is Outcome.SURVIVED
    text, good = report(RTL, [(ADDED, answer)])
    assert "rtl/bitlane_rtl/unit.py:2: a + b * 0 -> (a - b * 0) [total]" in text
    assert "0.0% of 1" in text
    assert not good


def test_the_tests_of_the_folder_alone_are_run_if_asked() -> None:
    place = Place(package=HOST)
    moved = replace(ADDED, file="driver/queue.py")
    assert judge(moved, place, [], folder_only=True).outcome is Outcome.SURVIVED
    assert place.asked == HOST.own_tests(moved.file)
    assert place.warmed == [moved.file]


def test_no_netlist_is_compared_after_the_tests_of_the_folder_alone() -> None:
    place = Place(same=True)
    moved = replace(ADDED, file="addresses/bursts.py")
    assert judge(moved, place, [], folder_only=True).outcome is Outcome.SURVIVED
    assert "netlists" not in place.asked


def test_outside_the_circuit_no_netlist_is_compared() -> None:
    place = Place(same=True, package=HOST)
    assert judge(ADDED, place, []).outcome is Outcome.SURVIVED
    assert "netlists" not in place.asked


def test_a_change_of_no_netlist_is_asked_no_more() -> None:
    place = Place(same=True)
    assert judge(ADDED, place, []).outcome is Outcome.SAME
    assert place.asked == [*RTL.own_tests(ADDED.file), "netlists"]


@pytest.mark.parametrize("file", ["abi/record.py", "configuration.py"])
def test_what_others_read_too_is_not_judged_by_netlists(file: str) -> None:
    answer = judge(replace(ADDED, file=file), Place(same=True), [])
    assert answer.outcome is Outcome.SURVIVED


def test_an_explained_change_is_not_counted() -> None:
    place = Place()
    known = Equivalent(
        package="rtl",
        file="unit.py",
        where="total",
        text="return a + b * 0",
        column=8,
        change="a + b * 0 -> (a - b * 0)",
        reason="b is 0",
    )
    explained = judge(ADDED, place, [known])
    assert (explained.outcome, explained.by, place.asked) == (Outcome.EXPLAINED, "b is 0", [])
    other = change("0 -> 1")
    assert judge(other, place, [known]).outcome is Outcome.SURVIVED
    caught = Answer(Outcome.CAUGHT, "test", 1)
    text, good = report(RTL, [(ADDED, explained), (other, caught)])
    assert "1 caught" in text
    assert "100.0% of 1" in text
    assert good


def test_answers_last_as_long_as_the_source(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PROJECT", project)
    path = project / "out/answers.jsonl"
    caught, survived = (
        Answer(Outcome.CAUGHT, "test", 1.5, late=True),
        Answer(Outcome.SURVIVED, "", 2),
    )
    Answers(path, PACKAGE).add(ADDED, caught)
    Answers(path, PACKAGE).add(change("0 -> 1"), survived)
    assert Answers(path, PACKAGE).get(ADDED) == caught
    assert Answers(path, PACKAGE).get(change("0 -> 1")) is None, "survivors are tried again"
    (project / PACKAGE / "unit.py").write_text(UNIT + "\n")
    assert Answers(path, PACKAGE).get(ADDED) is None


ENTRY = "import os\nfrom pathlib import Path\n\nentry = Path(os.environ['CPPSIM_CACHE'], 'entry')\n"
FILLS = ENTRY + "\ndef test_it():\n    entry.mkdir(parents=True, exist_ok=True)\n"
FINDS = ENTRY + "\ndef test_it():\n    assert entry.exists()\n"


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ({"shared": True}, [False, True]),
        ({"cold": ("",)}, [False, False]),
        ({}, [True, True]),
    ],
    ids=["shared", "cold", "warm"],
)
def test_a_change_finds_the_entries_that_it_may_find(
    project: Path, kind: dict[str, Any], found: list[bool]
) -> None:
    """The tests without a change fill the cache of a warm package before each change."""
    (project / "tests/test_fills.py").write_text(FILLS)
    (project / "tests/test_finds.py").write_text(FINDS)
    tests, added = ["tests/test_finds.py"], change("0 -> 1")
    place = Workplace(project, replace(RTL, **{"cold": (), **kind}), deadline=30)
    seen = []
    for _ in range(2):
        place.warm_up(added.file, ["tests/test_fills.py"])
        with place.changed(added):
            seen.append(place.fails(tests) == "")
            assert place.fails(["tests/test_fills.py"]) == ""
    place.close()
    assert seen == found
