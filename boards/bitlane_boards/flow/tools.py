"""Run the tools that make bitstreams, which are all Python packages. It knows no FPGA.

Every call has a deadline, and no tool runs on after its call.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

from bitlane.errors import BitlaneError
from bitlane.installation import how_to_install
from bitlane_sim.builds import CACHE

from .families import Tool

__all__ = ["Progress", "ToolError", "Usage", "require", "run_tool", "silent"]

Progress = Callable[[str], None]
"""A function that takes a line at the start of each step, and every 15 s during a step."""

DEADLINE_SECONDS = 3600.0
_POLL_SECONDS = 0.05
_REPORT_SECONDS = 15.0

_COMPILES = b"Preparing to run"
"""YoWASP's message while it compiles a tool to machine code, once for each version."""


def silent(line: str) -> None:
    """Print nothing; for steps that report no progress."""


class ToolError(BitlaneError):
    """A tool failed. ``reason`` is the tool's own message, without its name and its log."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = message if reason is None else reason


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a step: seconds on the clock, and peak memory in bytes."""

    seconds: float
    peak_bytes: int


def require(tools: Sequence[Tool]) -> dict[str, str]:
    """Return the versions of the packages of ``tools``.

    Raises ``BitlaneError`` that names the missing packages and the command that installs them.
    """
    versions = {}
    missing = []
    for tool in tools:
        try:
            versions[tool.package] = version(tool.package)
        except PackageNotFoundError:
            missing.append(tool.package)
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise BitlaneError(f"not installed: {names}; {how_to_install('boards')} brings it")
    return versions


def run_tool(
    tool: Tool, arguments: Sequence[str], folder: Path, log: Path, progress: Progress
) -> Usage:
    """Run ``tool`` in ``folder``, with its output in ``log``.

    Its first use compiles it to machine code, while other processes wait. Raises ``ToolError`` if
    it fails or takes longer than an hour.
    """
    started = time.monotonic()
    _compile_once(tool, progress)
    status, peak = _run(tool, arguments, folder, log, progress)
    if status:
        reason = _complaint(log)
        raise ToolError(f"{tool.command}: {reason} (all of it: {log})", reason)
    return Usage(time.monotonic() - started, peak)


def _compile_once(tool: Tool, progress: Progress) -> None:
    """Let ``tool`` compile itself if no process has let it do so.

    YoWASP writes the machine code in place. A process that compiles a tool ends those that run it.
    """

    def compile_alone(folder: Path) -> None:
        # Not each tool has the option, but each one is compiled before it reads its arguments.
        _run(tool, ["--version"], folder, folder / "log", progress)

    places = (os.environ.get(name, "") for name in ("YOWASP_CACHE_DIR", "XDG_CACHE_HOME", "HOME"))
    identity = "\0".join((tool.command, tool.package, version(tool.package), *places))
    CACHE.cached("tools-compiled", hashlib.sha256(identity.encode()).hexdigest(), compile_alone)


def _run(
    tool: Tool, arguments: Sequence[str], folder: Path, log: Path, progress: Progress
) -> tuple[int, int]:
    """Run ``tool`` to its end. Return its exit code and its peak memory in bytes."""
    (entry,) = entry_points(group="console_scripts", name=tool.command)
    code = f"import sys; from {entry.module} import {entry.attr} as main; sys.exit(main())"
    # YoWASP's runtime makes folders there, which it leaves behind when it is killed.
    with tempfile.TemporaryDirectory(prefix="bitlane-") as scratch:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                cwd=folder,
                env={**CACHE.tool_environment(), "TMPDIR": scratch},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            return _wait(process, tool, log, progress)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()


def _beginning(log: Path) -> bytes:
    with log.open("rb") as file:
        return file.read(200)


def _wait(
    process: "subprocess.Popen[bytes]", tool: Tool, log: Path, progress: Progress
) -> tuple[int, int]:
    """Wait for ``process``. Return its exit code and its peak memory in bytes."""
    compiles = False
    started = reported = time.monotonic()
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        now = time.monotonic()
        if now - started > DEADLINE_SECONDS:
            raise ToolError(f"{tool.command}: still running after {DEADLINE_SECONDS:.0f} s")
        if not compiles and _COMPILES in _beginning(log):
            compiles = True
            progress(f"{tool.command}: first use, compiling it to machine code (once, a minute)")
        if now - reported > _REPORT_SECONDS:
            reported = now
            progress(f"{tool.command}: still running")
        time.sleep(_POLL_SECONDS)


def _complaint(log: Path) -> str:
    """Return the line of ``log`` that gives the reason of a failure."""
    lines = [
        line.strip()
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip()
    ]
    errors = [line for line in lines if line.startswith(("ERROR", "Error", "error"))]
    return (errors or lines or ["failed without a message"])[-1]
