"""Tests of the second run of `.ci/run`, which leaves out what the first one passed."""

import json
from pathlib import Path

import pytest

from support.processes import run_python

ROOT = Path(__file__).parents[1]

MODULE = """
import pytest
from hypothesis import given, strategies
from support.seeds import {imported}

@pytest.mark.parametrize("seed", seeds(2, 4))
def test_seed(seed): pass

def test_always(): pass

def test_fails(): raise ValueError

def test_seeds_within():
    for seed in seeds(1, 2): pass

def test_seeds_that_are_as_many():
    for seed in seeds(2, 2): pass

@given(strategies.integers())
def test_examples(value): pass

@pytest.mark.slow
def test_slow(): pass
"""

FIRST = ["test_always", "test_seed[0]", "test_seed[1]", "test_seeds_that_are_as_many"]
SECOND = ["test_examples", "test_fails", "test_seed[2]", "test_seed[3]", "test_seeds_within"]


def tier(folder: Path, *words: str | Path) -> str:
    """Run pytest with the project's hooks on the tests in ``folder``; return what it prints."""
    own = ["-p", "conftest", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml", "-v"]
    ran = run_python("-m", "pytest", *own, f"--rootdir={folder}", *words, folder)
    assert ran.returncode == 1, ran.stdout + ran.stderr  # one test fails
    return ran.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_passed_is_left_out_unless_it_goes_deeper(tmp_path: Path, workers: str) -> None:
    module, passed = tmp_path / "test_some.py", tmp_path / "below" / "passed.json"
    module.write_text(MODULE.format(imported="seeds"))
    quick = ["-m", "not slow", "--hypothesis-profile", "quick", "--store-passed", passed]
    tier(tmp_path, "-n", workers, *quick)
    names = [name.rpartition("::")[2] for name in json.loads(passed.read_text())]
    assert names == FIRST
    full = tier(tmp_path, "-n", "0", "--hypothesis-profile", "full", "--except-passed", passed)
    ran = {line.split("::")[1].split(" ")[0] for line in full.splitlines() if "%]" in line}
    assert sorted(ran) == sorted([*SECOND, "test_slow"])


def test_all_tests_of_a_module_that_takes_steps_by_tier_run_again(tmp_path: Path) -> None:
    passed = tmp_path / "passed.json"
    (tmp_path / "test_some.py").write_text(MODULE.format(imported="seeds, stride"))
    tier(tmp_path, "--hypothesis-profile", "quick", "--store-passed", passed)
    assert json.loads(passed.read_text()) == []


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
    words = ["-p", "conftest", "-c", ROOT / "pyproject.toml", f"--rootdir={tmp_path}", tmp_path]
    ran = run_python("-c", ignoring, *words)
    assert "ValueError" in ran.stdout, ran.stdout + ran.stderr
