"""The tiers: seeds and examples of each, a second run in `.ci/run`, and the seconds of modules."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from support.durations import RECORDED, add, is_there, main, module, read, record
from support.processes import run_python
from support.rotation import REPLAY, head
from support.rotation import commit as chooser
from support.seeds import DEEP, FACTOR, FULL, QUICK, SINGLE, examples, seeds, slow

pytestmark = [pytest.mark.any_circuit, pytest.mark.any_face]

ROOT = Path(__file__).parents[1]
COMMIT = "50e50e50"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(FACTOR, raising=False)
    monkeypatch.delenv(SINGLE, raising=False)
    monkeypatch.setenv(REPLAY, COMMIT)
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 2), (DEEP, 30)])
def test_the_seeds_of_the_outer_tiers_are_fixed(tier: str, count: int) -> None:
    settings.load_profile(tier)
    assert list(seeds(2, 10)) == list(range(count))


@pytest.mark.parametrize(
    ("few", "most", "count"), [(2, 10, 3), (1, 3, 2), (4, 8, 5), (2, 2, 2), (20, 200, 34)]
)
def test_the_full_tier_has_a_sixth_of_the_seeds(few: int, most: int, count: int) -> None:
    settings.load_profile(FULL)
    found = list(seeds(few, most))
    assert len(found) == count
    assert found == sorted(set(found))
    assert found[:few] == list(range(few))
    assert max(found) < most


def test_each_commit_draws_others_and_always_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    settings.load_profile(FULL)
    seen, before = set[int](), list[int]()
    for commit in range(40):
        monkeypatch.setenv(REPLAY, f"{commit:08}")
        found = list(seeds(10, 100))
        assert list(seeds(10, 100)) == found != before
        seen, before = seen | set(found), found
    assert len(seen) > 90, "of 100"


@pytest.mark.parametrize("told", ["HEAD", "c87278f", "C87278F1", "main~1", "c87278f1 "])
def test_a_replay_of_what_no_run_has_printed_is_refused(
    monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setenv(REPLAY, told)
    with pytest.raises(ValueError) as error:
        chooser()
    expected = "expected the hash of a commit, 8 digits or more, as a run prints it"
    assert str(error.value) == f"REPLAY: {told!r}; {expected}"


def test_a_replay_names_a_hash_or_its_first_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = "c87278f1fb2e83a2a2b6f8af9e3b1d5b6bbf7ec4"
    for told in (whole, whole[:8]):
        monkeypatch.setenv(REPLAY, told)
        assert chooser() == "c87278f1"
    monkeypatch.setenv(REPLAY, "")
    assert chooser() == head()[:8]


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 10), (FULL, 50), (DEEP, 150)])
def test_the_profile_chooses_the_number_of_examples(tier: str, count: int) -> None:
    settings.load_profile(tier)
    assert examples(0.5).max_examples == count
    assert examples(0).max_examples == 1


@pytest.mark.parametrize(("tier", "count"), [(QUICK, 6), (FULL, 7), (DEEP, 90)])
def test_a_factor_multiplies_all(tier: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.load_profile(tier)
    monkeypatch.setenv(FACTOR, "3")
    assert len(seeds(2, 10)) == count


def test_slow_parameters_have_the_mark() -> None:
    parameters = slow(1, "two")
    assert (parameters.values, [mark.name for mark in parameters.marks]) == ((1, "two"), ["slow"])


@pytest.mark.parametrize("tier", [QUICK, FULL])
def test_a_single_seed_is_replayed_alone(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.load_profile(tier)
    monkeypatch.setenv(FACTOR, "3")
    monkeypatch.setenv(SINGLE, "70")
    assert seeds(2, 10) == range(70, 71)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (FACTOR, "0", "SEEDS: '0'; expected a whole number from 1 on"),
        (FACTOR, "-1", "SEEDS: '-1'; expected a whole number from 1 on"),
        (SINGLE, "-7", "SEED: '-7'; expected a whole number from 0 on"),
        (FACTOR, "ten", "SEEDS: 'ten'; expected a whole number from 1 on"),
    ],
)
def test_other_values_are_refused(
    variable: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError) as error:
        seeds(2, 10)
    assert str(error.value) == message


MODULE = """
import pytest
from hypothesis import given, strategies
from support.seeds import {imported}

@pytest.mark.parametrize("seed", seeds(2, 4))
def test_seed(seed): pass

def test_always(): pass

def test_seeds_within():
    for seed in seeds(1, 2): pass

def test_seeds_that_are_as_many():
    for seed in seeds(2, 2): pass

@given(strategies.integers())
def test_examples(value): pass

@pytest.mark.slow
@pytest.mark.parametrize("case", range(5))
def test_slow(case): pass
"""

FIRST = ["test_always", "test_seed[0]", "test_seed[1]", "test_seeds_that_are_as_many"]
DEEPER = {"test_examples", "test_seed[SEED]", "test_seeds_within"}


def tier(folder: Path, *words: str | Path, commit: str = COMMIT, fails: bool = False) -> str:
    """Run pytest with the project's hooks on the tests in ``folder``; return what it prints."""
    own = ["-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml", "-v"]
    options = [*own, f"--rootdir={folder}", *words, folder]
    ran = run_python("-m", "pytest", *options, **{REPLAY: commit})
    assert ran.returncode == fails, ran.stdout + ran.stderr
    return ran.stdout


def names_of(output: str) -> list[str]:
    """Return the names of the tests that ran, in order."""
    return sorted(line.split("::")[1].split(" ")[0] for line in output.splitlines() if "%]" in line)


@pytest.mark.parametrize(("workers", "commits"), [("0", 1), slow("2", 6)])
def test_a_test_that_passed_is_left_out_unless_it_goes_deeper(
    tmp_path: Path, workers: str, commits: int
) -> None:
    module, passed = tmp_path / "test_some.py", tmp_path / "below" / "passed.json"
    module.write_text(MODULE.format(imported="seeds"))
    quick = ["-m", "not slow", "--hypothesis-profile", "quick", "--store-passed", passed]
    tier(tmp_path, "-n", workers, *quick, "--store-durations", tmp_path / "seconds.json")
    assert read(tmp_path / "seconds.json").keys() == {"test_some.py"}
    names = [name.rpartition("::")[2] for name in json.loads(passed.read_text())["passed"]]
    assert names == FIRST
    full = ["-n", "0", "--hypothesis-profile", "full", "--except-passed", passed]
    seen = set[str]()
    for commit in map("{:08}".format, range(commits)):
        ran = names_of(tier(tmp_path, *full, commit=commit))
        again = {re.sub(r"seed\[\d+\]", "seed[SEED]", each) for each in ran if "slow" not in each}
        assert len(again) == 1, "a sixth of those that go deeper"
        assert len(ran) == 1 + 1, "a sixth of the slow cases, rounded up"
        seen |= again
    assert seen == DEEPER if commits > 1 else seen < DEEPER


@pytest.mark.slow
def test_all_tests_of_a_module_that_takes_steps_by_tier_run_again(tmp_path: Path) -> None:
    passed = tmp_path / "passed.json"
    (tmp_path / "test_some.py").write_text(MODULE.format(imported="seeds, stride"))
    tier(tmp_path, "--hypothesis-profile", "quick", "--store-passed", passed)
    assert json.loads(passed.read_text())["passed"] == []


ROTATING = """
import pytest

BOARDS = ["one", "two", "three", "four", "five"]

@pytest.mark.rotates(2)
@pytest.mark.parametrize("board", BOARDS)
def test_first(board): pass

@pytest.mark.rotates(2)
@pytest.mark.parametrize("board", BOARDS)
def test_second(board): pass

@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_parts(part): pass

@pytest.mark.slow
@pytest.mark.proves
@pytest.mark.parametrize("part", range(4))
def test_proofs(part): pass

@pytest.mark.deep
def test_deep(): pass
"""


@pytest.mark.slow
def test_a_part_of_the_boards_is_chosen_by_the_commit(tmp_path: Path) -> None:
    (tmp_path / "test_netlists.py").write_text(ROTATING)
    full = ["-m", "not deep", "--hypothesis-profile", "full"]
    seen = set[str]()
    for commit, workers in (("0123456789", "2"), ("0123456700", "0"), ("9876543210", "0")):
        output = tier(tmp_path, *full, "-n", workers, commit=commit)
        assert len(re.findall(r"PASSED \S*test_parts|test_parts\S* PASSED", output)) == 1
        assert len(re.findall(r"PASSED \S*test_proofs|test_proofs\S* PASSED", output)) == 4
        found = re.findall(r"test_(first|second)\[(\w+)\] ", output.partition("short test")[0])
        tried = {board for _, board in found}
        assert set(found) == {(name, board) for name in ("first", "second") for board in tried}
        [line] = [line for line in output.splitlines() if line.startswith("sampled")]
        assert line == (
            f"sampled by {commit[:8]} (REPLAY={commit[:8]} repeats it):"
            f" netlists 2 of 5 ({', '.join(sorted(tried))});"
            " a sixth of the seeds and of the cases of each other test"
        )
        seen.add(" ".join(sorted(tried)))
    assert len(seen) == 2, "eight digits choose"


@pytest.mark.slow
def test_the_deep_tier_leaves_out_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_netlists.py").write_text(ROTATING)
    output = tier(tmp_path, "--hypothesis-profile", "deep")
    assert len(names_of(output)) == 5 + 5 + 4 + 4 + 1
    assert "sampled" not in output


def test_programs_end_at_an_interrupt_behind_an_ampersand(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import signal, subprocess, sys\n"
        "def test_interrupt():\n"
        "    code = 'import os, signal; os.kill(os.getpid(), signal.SIGINT)'\n"
        "    ran = subprocess.run([sys.executable, '-c', code], stderr=subprocess.DEVNULL)\n"
        "    assert ran.returncode == -signal.SIGINT\n"
        "    raise ValueError\n"
    )
    ignoring = (
        "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    words = ["-c", ROOT / "pyproject.toml", f"--rootdir={tmp_path}", tmp_path]
    ran = run_python("-c", ignoring, *words)
    assert "ValueError" in ran.stdout, ran.stdout + ran.stderr


def test_a_module_is_named_from_the_folder_of_tests() -> None:
    assert module("tests/rtl/test_core.py::test_some[a::b]") == "rtl/test_core.py"
    assert module("cppsim/tests/test_mode.py::test_some") == "cppsim/tests/test_mode.py"


def test_the_seconds_of_two_runs_are_added(tmp_path: Path) -> None:
    path = tmp_path / "below" / "seconds.json"
    add(path, {"b": 1.25, "a": 2})
    add(path, {"b": 2, "c": 0.04})
    assert list(read(path).items()) == [("a", 2), ("b", 3.2), ("c", 0)]


def test_a_module_with_stored_verdicts_keeps_its_seconds(tmp_path: Path) -> None:
    path, slowest = tmp_path / "seconds.json", max(read(), key=lambda name: read()[name])
    add(path, {slowest: 1, "new": 1}, {slowest, "new"})
    assert read(path) == {slowest: read()[slowest], "new": 1}


def test_only_modules_that_are_there_are_recorded(tmp_path: Path) -> None:
    path, recorded = tmp_path / "seconds.json", tmp_path / "recorded.json"
    alone = "cppsim/tests/test_mode.py"
    add(recorded, {"test_tiers.py": 3, "test_known.py": 4, alone: 2, "gone/test_gone.py": 5})
    add(path, {"test_tiers.py": 1, "gone/test_other.py": 2})
    record(path, recorded)
    assert read(recorded) == {alone: 2, "test_known.py": 4, "test_tiers.py": 1}


def test_seconds_that_were_not_measured_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none.json")]) == 1
    assert "none.json: no such file; `make ci` measures" in capsys.readouterr().err


def test_modules_with_recorded_seconds_are_there() -> None:
    assert [name for name in read(RECORDED) if not is_there(name)] == []
