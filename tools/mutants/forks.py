"""A process that has imported the libraries that tests use, and forks for each run of a module.

It imports nothing of the project: a fork reads the sources as they are when it starts. A line of
standard input is a deadline in seconds, the module and its arguments, as JSON; the line that
answers is the exit code, null after the deadline, and the output.

A fork is in a session of its own. Processes that it has left behind are killed.
"""

import gc
import json
import os
import runpy
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

LIBRARIES = (
    "amaranth.back.rtlil",
    "amaranth.lib.wiring",
    "amaranth.sim",
    "amaranth.vendor",
    "hypothesis.extra.numpy",
    "hypothesis.stateful",
    "numpy.testing",
    "pytest",
)

_TICK = 0.01
"""Seconds between two looks whether a fork has ended."""


def run(command: Sequence[str], deadline: float) -> tuple[int | None, str]:
    """Run a module in a fork. Return its exit code, None after the deadline, and its output.

    In the fork itself, raise ``SystemExit``.
    """
    with TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _run_here(command, output)
        code = _wait(child, time.monotonic() + deadline)
        output.seek(0)
        return code, output.read().decode(errors="replace")


def _run_here(command: Sequence[str], output: BinaryIO) -> None:
    """Run a module as the program of this process; raise ``SystemExit``."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    sys.argv[1:] = command[1:]
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)
    sys.exit(0)


def _wait(child: int, end: float) -> int | None:
    """Wait for a fork until ``end``; return its exit code, or None. Kill what remains of it."""
    ended, status = 0, 0
    try:
        while not ended and time.monotonic() < end:
            time.sleep(_TICK)
            ended, status = os.waitpid(child, os.WNOHANG)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    if ended:
        return os.waitstatus_to_exitcode(status)
    os.waitpid(child, 0)
    return None


def main() -> None:
    """Answer until standard input ends. A signal ends the fork, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in LIBRARIES:
        import_module(name)
    gc.freeze()
    for line in sys.stdin:
        deadline, *command = json.loads(line)
        print(json.dumps(run(command, deadline)), flush=True)


if __name__ == "__main__":
    main()
