"""A workplace of `make mutants` has one change at a time, and names the test that notices it.

The project whose source is changed has a circuit of one function.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mutants import run
from mutants.changes import changes
from mutants.packages import PACKAGES
from mutants.run import Answer, Answers, Outcome
from mutants.workplace import FOLDERS, NoAnswer, Workplace

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

RTL = PACKAGES["rtl"]
PACKAGE = RTL.folder

UNIT = "def total(a, b):\n    return a + b * 0\n"
TESTS = "from bitlane_rtl.unit import total\n\ndef test_total():\n    assert total(2, 3) == 2\n"
FILES = {
    "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow', 'deep']\n",
    "README.md": "",
    f"{PACKAGE}/__init__.py": "",
    f"{PACKAGE}/unit.py": UNIT,
    "tests/conftest.py": (
        "from hypothesis import settings\n"
        "for name in ('quick', 'full'):\n    settings.register_profile(name)\n"
    ),
    "tests/test_total.py": TESTS,
    "tests/test_slow.py": f"import pytest\npytestmark = pytest.mark.slow\n{TESTS}",
    "tests/test_crash.py": "import os\n\ndef test_it():\n    os.abort()\n",
    "tests/test_leaves.py": "import os\n\ndef test_it():\n    os._exit(0)\n",
    "tests/test_hangs.py": "import time\n\ndef test_it():\n    time.sleep(60)\n",
}
TOTAL = "tests/test_total.py::test_total"

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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in (PACKAGE, *FOLDERS):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def place(project: Path) -> Iterator[Workplace]:
    with closing(Workplace(project, RTL, deadline=30)) as place:
        yield place


BY_SUMMARY = {each.summary: each for each in changes(UNIT, "unit.py")}
UNSEEN, SEEN = BY_SUMMARY["a + b * 0 -> (a - b * 0)"], BY_SUMMARY["b * 0 -> (b + 0)"]


@pytest.mark.parametrize(
    ("tier", "by"), [("full", "tests/test_slow.py::test_total"), ("quick", "")]
)
def test_the_quick_tier_runs_no_slow_test(project: Path, tier: str, by: str) -> None:
    with closing(Workplace(project, RTL, deadline=30, tier=tier)) as place, place.changed(SEEN):
        assert place.fails(["tests/test_slow.py"]) == by


def test_a_test_that_notices_a_change_is_named(place: Workplace, project: Path) -> None:
    with place.changed(UNSEEN):
        assert place.fails(["tests/test_total.py"]) == ""
    with place.changed(SEEN):
        assert place.fails(["tests/test_total.py"]) == TOTAL
        assert (project / PACKAGE / "unit.py").read_text() == UNIT
        assert not place.pass_unchanged([], TOTAL)
    assert place.pass_unchanged([], TOTAL)


def test_a_process_that_ends_without_a_result_is_told(place: Workplace) -> None:
    crash, total = ["tests/test_crash.py"], ["tests/test_total.py"]
    assert place.fails(crash) == "exit code -6"
    assert not place.pass_unchanged(crash, "exit code -6")
    assert place.pass_unchanged(total, "exit code -6")
    assert place.fails(["tests/test_leaves.py"]) == "exit code 0", "has not passed"
    with pytest.raises(NoAnswer, match=r"test_nothing\.py"):
        place.fails(["tests/test_nothing.py"])


def test_a_change_that_breaks_what_all_tests_import_is_noticed(project: Path) -> None:
    (project / "tests/conftest.py").write_text("raise ValueError\n")
    with closing(Workplace(project, RTL, deadline=30)) as place:
        assert place.fails(["tests/test_total.py"]) == "exit code 4"
        assert not place.pass_unchanged(["tests/test_total.py"], "exit code 4")


def test_tests_that_do_not_end_are_given_up(project: Path) -> None:
    with closing(Workplace(project, RTL, deadline=2)) as place:
        assert place.fails(["tests/test_hangs.py"]) == "deadline"


@pytest.mark.timeout(60)
def test_a_program_that_a_test_started_ends_with_the_test(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test sees that compiled sources are stored, whatever the caller's environment says."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    lock = project / "lock"
    starts = STARTS.format(program=HOLDS, lock=str(lock))
    (project / "tests/test_starts.py").write_text(starts)
    with closing(Workplace(project, RTL, deadline=30)) as place:
        assert place.fails(["tests/test_starts.py"]) == ""
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


def test_answers_last_as_long_as_the_source(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PROJECT", project)
    path = project / "out/answers.jsonl"
    caught = Answer(Outcome.CAUGHT, "test", 1.5, late=True)
    Answers(path, PACKAGE).add(SEEN, caught)
    Answers(path, PACKAGE).add(UNSEEN, Answer(Outcome.SURVIVED, "", 2))
    assert Answers(path, PACKAGE).get(SEEN) == caught
    assert Answers(path, PACKAGE).get(UNSEEN) is None, "survivors are tried again"
    (project / PACKAGE / "unit.py").write_text(UNIT + "\n")
    assert Answers(path, PACKAGE).get(SEEN) is None


ENTRY = "import os\nfrom pathlib import Path\n\nentry = Path(os.environ['CPPSIM_CACHE'], 'entry')\n"
FILLS = ENTRY + "\ndef test_it():\n    entry.mkdir(parents=True, exist_ok=True)\n"
FINDS = ENTRY + "\ndef test_it():\n    assert entry.exists()\n"


@pytest.mark.parametrize(
    ("kind", "found"),
    [({"shared": True}, [False, True]), ({"cold": ("",)}, [False, False]), ({}, [True, True])],
    ids=["shared", "cold", "warm"],
)
def test_a_change_finds_the_entries_that_it_may_find(
    project: Path, kind: dict[str, Any], found: list[bool]
) -> None:
    """The tests without a change fill the cache of a warm package before each change."""
    (project / "tests/test_fills.py").write_text(FILLS)
    (project / "tests/test_finds.py").write_text(FINDS)
    package, seen = replace(RTL, **{"cold": (), **kind}), []
    with closing(Workplace(project, package, deadline=30)) as place:
        for _ in range(2):
            place.warm_up("unit.py", ["tests/test_fills.py"])
            with place.changed(SEEN):
                seen.append(place.fails(["tests/test_finds.py"]) == "")
                assert place.fails(["tests/test_fills.py"]) == ""
    assert seen == found
