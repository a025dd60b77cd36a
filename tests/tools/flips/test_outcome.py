"""The table of outcomes of a batch of flips equals one worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from bitlane.command_line.cli import DONE, UNUSABLE
from bitlane.errors import BitlaneError
from flips.outcome import FlipOutcome, Flips
from flips.run import main

PARTS = ("greeting", "memory")
FLIPS = Flips(
    luts=np.array([0, 0, 1, 2, 2]),
    rows=np.array([3, 7, 0, 1, 2]),
    locations=np.array([[1, 2, 0], [1, 2, 0], [1, 2, 1], [5, 5, 7], [5, 5, 7]]),
    reached=np.array([True, True, True, True, False]),
    longest=12_345,
)
RESULTS = {
    # The last instance runs without a flip.
    "line 0": np.array([9, 4, 4, 4, 4, 4], np.uint64),
    "line 1": np.array([8, 5, 5, 5, 5, 5], np.uint64),
    "leds 0": np.array([1, 1, 1, 1, 1, 1], np.uint64),
    "leds 1": np.array([2, 3, 2, 2, 2, 2], np.uint64),
    "addressed 0": np.array([1, 1, 0, 0, 0, 0], np.uint64),
    "addressed 1": np.array([1, 1, 1, 0, 0, 0], np.uint64),
}
TABLE = {
    "bits that inputs can choose": 5,
    "seen at a pin": 2,
    "seen on the line": 1,
    "seen after greeting": 1,
    "seen after memory": 2,
    "looked up, not seen": 1,
    "never looked up": 2,
    "nor by the sound board in 12,345 cycles": 1,
}


def test_each_flip_is_counted_where_it_was_seen_first() -> None:
    outcome = FlipOutcome.of(FLIPS, PARTS, RESULTS)
    assert outcome.line.tolist() == [0, 2, 2, 2, 2]
    assert outcome.leds.tolist() == [2, 1, 2, 2, 2]
    assert outcome.looked_up.tolist() == [0, 0, 1, 2, 2]
    assert {row["what"]: row["flips"] for row in outcome.rows(FLIPS)} == TABLE


def test_what_has_differed_once_was_seen() -> None:
    results = RESULTS | {"line 1": np.array([5, 5, 5, 5, 5, 5], np.uint64)}
    assert FlipOutcome.of(FLIPS, PARTS, results).line[0] == 0


def test_a_flip_that_is_seen_and_never_looked_up_is_an_error() -> None:
    results = RESULTS | {"line 1": np.array([8, 5, 5, 6, 5, 5], np.uint64)}
    with pytest.raises(BitlaneError, match=r"row 1 of LUT 7 in tile 5,5 was seen and never looked"):
        FlipOutcome.of(FLIPS, PARTS, results)


def test_a_folder_that_was_run_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FLIPS.save(tmp_path / "flips.npz", PARTS)
    np.savez(tmp_path / "results.npz", **RESULTS)  # type: ignore[arg-type]
    assert main(["hx8k", "--results", str(tmp_path)]) == DONE
    lines = capsys.readouterr().out.splitlines()
    assert {line[:56].strip(): int(line[56:]) for line in lines} == TABLE
    # A row that is a part of another row is indented below it.
    indents = [len(line) - len(line.lstrip()) for line in lines]
    assert indents == [0, 2, 4, 4, 4, 2, 2, 4]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--results", "nowhere"), "expected a folder of flips that was run"),
        (("--bitstream", "nowhere"), "nowhere: no such file; bitlane build hx8k makes it"),
        (("--json", "nowhere/flips.json"), "expected a folder that is there"),
    ],
)
def test_bad_input_is_told_in_a_line(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hx8k", *words]) == UNUSABLE
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("option", ["--instances", "--cycles", "--pool"])
def test_there_is_one_at_least(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["hx8k", "--results", "nowhere", option, "0"])
    assert stop.value.code == UNUSABLE
    assert f"argument {option}: '0': expected 1 or more" in capsys.readouterr().err
