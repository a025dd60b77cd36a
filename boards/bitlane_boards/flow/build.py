"""From a board to its bitstream: circuit, synthesis, placement, routing, packing, report.

A bitstream is left behind only if the circuit fits the device and meets its clock. The same board,
seed and tools give the same bits.
"""

import hashlib
import inspect
import json
import re
import warnings
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from ..board import Board
from .families import FLOWS, YOSYS, ToolCall
from .platform import BoardTop, expect_clock, load_platform
from .rgmii import LINE_HZ
from .tools import Progress, ToolError, Usage, require, run_tool

__all__ = ["Build", "BuildError", "BuildReport", "build"]

_NAME = "top"
"""The name of the circuit, and the stem of its files."""

_ROUTING_LOG = "place-and-route.log"

_CLOCK = "sync"
"""The domain of the board's clock."""

_USED = re.compile(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%", re.MULTILINE)
"""A row of nextpnr's table of device utilisation."""


class BuildError(Exception):
    """The circuit does not fit the device, or does not meet its clock. One line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildReport:
    """The figures of a build. Frequencies are in MHz."""

    board: str
    title: str
    seed: int
    clock_mhz: float
    achieved_mhz: float
    cells: dict[str, tuple[int, int]]
    """Used and available, by nextpnr's names."""
    blocks: dict[str, tuple[int, int]]
    line_clocks_mhz: dict[str, tuple[float, float]]
    """Required and achieved, of the clock domains of an Ethernet port."""
    memory_bytes: int
    link: str
    bitstream: str
    bitstream_bytes: int
    why: dict[str, str]
    """The reasons for the board's choices."""
    ports: dict[str, str]
    """Pins of the package by the ports of the netlist."""
    steps: dict[str, Usage]
    versions: dict[str, str]

    @property
    def margin(self) -> float:
        """The slack of the clock: achieved frequency over required frequency, minus 1."""
        return self.achieved_mhz / self.clock_mhz - 1

    @property
    def seconds(self) -> float:
        return sum(usage.seconds for usage in self.steps.values())

    @property
    def peak_bytes(self) -> int:
        """The most memory that a tool held."""
        return max(usage.peak_bytes for usage in self.steps.values())

    def text(self) -> str:
        """Return the report as lines for a terminal."""
        used = [*self.cells.items(), *self.blocks.items()]
        clocks = {"clock": (self.clock_mhz, self.achieved_mhz)}
        clocks |= {f"clock {name}": clock for name, clock in self.line_clocks_mhz.items()}
        lines = [
            f"{self.board}: {self.title}, seed {self.seed}",
            *(f"  {name:20} {n:6} of {of:6}  {n / of:4.0%}" for name, (n, of) in used if of),
            *(
                f"  {name:20} {mhz:6.2f} MHz; achieves {achieved:.2f} MHz,"
                f" margin {achieved / mhz - 1:.1%}"
                for name, (mhz, achieved) in clocks.items()
            ),
            f"  {'memory':20} {self.memory_bytes // 1024:6} KiB",
            f"  {'link':20} {self.link}",
            f"  {'bitstream':20} {self.bitstream}, {self.bitstream_bytes} bytes",
            f"  {'took':20} {self.seconds:6.1f} s, {self.peak_bytes / 2**20:.0f} MiB at most",
            *(f"  {name:20} {number}" for name, number in self.versions.items()),
            *(f"  why this {choice:11} {reason}" for choice, reason in self.why.items()),
        ]
        return "\n".join(lines)


def build(board: Board, folder: Path, progress: Progress, *, seed: int = 1) -> BuildReport:
    """Build ``board`` in ``folder``, which is made if need be, and write the report there too.

    Raises `BuildError`; ``BitlaneError`` if a tool is missing or fails; ``OSError`` if the folder
    cannot be written.
    """
    flow = Build(board, folder, progress)
    flow.synthesise()
    achieved = flow.route(seed)
    return flow.pack(seed, achieved)


class Build:
    """The build of ``board`` in ``folder``, a stage at a time: each needs the one before.

    Raises ``BitlaneError`` if a tool is missing, and in all stages what `build` does.
    """

    def __init__(self, board: Board, folder: Path, progress: Progress) -> None:
        self._board = board
        self._flow = FLOWS[board.family]
        self.versions = require((YOSYS, self._flow.nextpnr, self._flow.pack))
        self.steps: dict[str, Usage] = {}
        self._folder = folder
        self._progress = progress
        self._platform = load_platform(board)
        expect_clock(board, self._platform)

    def identity(self, seed: int) -> str:
        """Return a digest of all inputs of the bitstream: circuit, pins, tools and their arguments.

        Sources that write the same circuit have the same digest.
        """
        flow, platform = self._flow, self._platform
        calls = (
            flow.synthesise(_NAME, platform),
            flow.route(_NAME, self._board.clock_hz / 1e6, seed, flow.part(_NAME, platform)),
            flow.packs(_NAME, platform, self._bitstream.name),
        )
        change = Path(inspect.getfile(flow.change)).read_text() if flow.change else ""
        digest = hashlib.sha256(f"{calls} {sorted(self.versions.items())} {change}".encode())
        for name, content in sorted(self._circuit.items()):
            digest.update(name.encode() + content)
        return digest.hexdigest()

    def synthesise(self) -> tuple[str, ...]:
        """Write the circuit and its netlist; return the names of the files that `route` needs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # Nothing of an earlier build may pass for this one's, should it fail.
        for old in ("report.json", "report.txt", self._bitstream.name):
            (self._folder / old).unlink(missing_ok=True)
        self._progress("writing the circuit")
        for name, content in self._circuit.items():
            (self._folder / name).write_bytes(content)
        self._run(self._flow.synthesise(_NAME, self._platform))
        self._flow.finish(self._folder / f"{_NAME}.json")
        return f"{_NAME}.json", f"{_NAME}.{self._flow.constraints}"

    def route(self, seed: int) -> float:
        """Place and route the netlist; return the achieved clock in MHz, even if it is too low.

        If another clock has less margin, it is lower by as much.
        """
        self._timing.unlink(missing_ok=True)
        part = self._flow.part(_NAME, self._platform)
        try:
            self._run(self._flow.route(_NAME, self._board.clock_hz / 1e6, seed, part))
        finally:
            # An over-full device is a clearer error than the tool's own message.
            _used(self._board, self._folder / _ROUTING_LOG)
        clocks = self._clocks()
        return self._board.clock_hz / 1e6 * min(achieved / mhz for mhz, achieved in clocks.values())

    def pack(self, seed: int, achieved: float) -> BuildReport:
        """Write the bitstream of the circuit routed with ``seed``, unless it misses the clock."""
        wanted = self._board.clock_hz / 1e6
        if achieved < wanted:
            missed = ", ".join(
                f"{got:.2f} MHz of {mhz:g} MHz" for mhz, got in self._clocks().values() if got < mhz
            )
            raise BuildError(
                f"{self._board.name}: timing not met: {missed};"
                " try another --seed, or a slower clock in the board's file"
            )
        new = self._bitstream.with_suffix(f"{self._bitstream.suffix}.new")
        try:
            self._run(self._flow.packs(_NAME, self._platform, new.name))
            new.replace(self._bitstream)
        finally:
            new.unlink(missing_ok=True)
        report = self._report(seed)
        _write(report, self._folder)
        return report

    @cached_property
    def _circuit(self) -> dict[str, bytes]:
        """RTLIL of the circuit and its pin constraints, by file name."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            # Without source locations, which differ from one checkout to the next.
            plan = self._platform.prepare(BoardTop(self._board), _NAME, emit_src=False)
        names = [f"{_NAME}.{suffix}" for suffix in ("il", self._flow.constraints)]
        contents = [plan.files[name] for name in names]
        return {
            name: content if isinstance(content, bytes) else content.encode()
            for name, content in zip(names, contents, strict=True)
        }

    def _clocks(self) -> dict[str, tuple[float, float]]:
        """Return the required and achieved MHz of each clock domain.

        Raises `ToolError` if nextpnr had another target.
        """
        found = json.loads(self._timing.read_text(encoding="utf-8"))["fmax"]
        wanted = {_CLOCK: self._board.clock_hz / 1e6}
        if self._board.ethernet:
            wanted |= dict.fromkeys(("rx", "tx"), LINE_HZ / 1e6)
        clocks = {}
        for domain, mhz in wanted.items():
            net = "" if domain == _CLOCK else f"{domain}_clk"
            achieved = [
                float(each["achieved"])
                for name, each in found.items()
                if net in name and abs(each["constraint"] / mhz - 1) < 1e-3
            ]
            if not achieved:
                raise ToolError(
                    f"{self._board.name}: nextpnr had another target than {mhz:g} MHz: {found}"
                )
            clocks[domain] = mhz, min(achieved)
        return clocks

    @property
    def _timing(self) -> Path:
        return self._folder / f"{_NAME}.timing.json"

    @property
    def _bitstream(self) -> Path:
        return self._folder / f"{self._board.name}.{self._flow.bitstream}"

    def _run(self, step: ToolCall) -> None:
        self._progress(f"{step.tool.command}: {step.name}")
        log = self._folder / f"{step.name.replace(' ', '-')}.log"
        self.steps[step.name] = run_tool(
            step.tool, step.arguments, self._folder, log, self._progress
        )

    def _report(self, seed: int) -> BuildReport:
        board, flow = self._board, self._flow
        used = _used(board, self._folder / _ROUTING_LOG)
        clocks = self._clocks()
        _, achieved = clocks.pop(_CLOCK)
        ours = {name: version(name) for name in ("amaranth", "amaranth-boards")}
        return BuildReport(
            board=board.name,
            title=board.title,
            seed=seed,
            clock_mhz=board.clock_hz / 1e6,
            achieved_mhz=achieved,
            cells={cell: used[cell] for cell in flow.cells if cell in used},
            blocks={block: used[block] for block in flow.blocks if block in used},
            line_clocks_mhz=clocks,
            memory_bytes=board.configuration.memory_bytes,
            link=_link(board),
            bitstream=str(self._bitstream),
            bitstream_bytes=self._bitstream.stat().st_size,
            why=dict(board.why),
            ports={port: pin for port, pin, _ in self._platform.iter_port_constraints_bits()},
            steps=self.steps,
            versions=self.versions | ours,
        )


def _used(board: Board, log: Path) -> dict[str, tuple[int, int]]:
    """Return used and available cells from nextpnr's ``log``; empty if it stopped before.

    Raises `BuildError` if the device is over-full.
    """
    text = log.read_text(encoding="utf-8", errors="replace")
    used = {name: (int(used), int(of)) for name, used, of in _USED.findall(text)}
    full = [f"{name} {n} of {of}" for name, (n, of) in used.items() if n > of]
    if full:
        raise BuildError(f"{board.name}: the device is over-full: {', '.join(full)}")
    return used


def _link(board: Board) -> str:
    """Return the board's link in words."""
    if board.ethernet is None:
        return f"{board.baud} baud"
    return board.ethernet.text


def _write(report: BuildReport, folder: Path) -> None:
    (folder / "report.json").write_text(
        json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8"
    )
    (folder / "report.txt").write_text(report.text() + "\n", encoding="utf-8")
