"""Tests of the recorded seconds of modules, by which long ones start first."""

from pathlib import Path

import pytest

from support.durations import RECORDED, add, is_there, main, module, read, record


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
    add(recorded, {"test_tiers.py": 3, "test_seeds.py": 4, alone: 2, "gone/test_gone.py": 5})
    add(path, {"test_tiers.py": 1, "gone/test_other.py": 2})
    record(path, recorded)
    assert read(recorded) == {alone: 2, "test_seeds.py": 4, "test_tiers.py": 1}


def test_seconds_that_were_not_measured_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none.json")]) == 1
    assert "none.json: no such file; `make ci` measures" in capsys.readouterr().err


def test_modules_with_recorded_seconds_are_there() -> None:
    assert [name for name in read(RECORDED) if not is_there(name)] == []
