"""A simulated SoC of LiteX behind ``litex_server``, by the commands of its page."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_connection
from time import monotonic, sleep

from support.docs.pages import ROOT

PAGE = ROOT / "docs" / "litex.md"

_LISTENS_WITHIN = 10.0
"""Seconds."""


@dataclass(frozen=True)
class Simulated:
    """The server's port, the folder of the SoC's build, and the board whose chip it has."""

    port: int
    folder: Path
    board: str

    @property
    def csr(self) -> Path:
        return self.folder / "csr.csv"

    def url(self, csr: Path | None = None, options: str = "") -> str:
        return f"litex://localhost:{self.port}?csr={csr or self.csr}{options}"


@contextmanager
def served(command: list[str], folder: Path, board: str) -> Iterator[Simulated]:
    """Run the simulation and ``litex_server``, each on a port that is free."""
    with running(command, folder) as bench:
        (uart,) = re.findall(r"port (\d+)", line(bench))
        # litex_server has no way to choose a free port; the next one rarely is taken.
        port = str(int(uart) + 1)
        words = of_page("litex_server --uart --uart-port socket:")
        words = [word.replace("2430", uart).replace("1234", port) for word in words]
        python = [sys.executable, "-u", "-m", "litex.tools.litex_server"]
        with running([*python, *words[1:]], folder) as server:
            assert "tcp port" in line(server)
            # It says so before it listens.
            deadline = monotonic() + _LISTENS_WITHIN
            while not _listens(int(port)):
                assert monotonic() < deadline, f"litex_server does not listen on port {port}"
                sleep(0.01)
            yield Simulated(int(port), folder, board)


def _listens(port: int) -> bool:
    try:
        create_connection(("localhost", port), _LISTENS_WITHIN).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def running(command: list[str], folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run ``command`` during a block."""
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def line(process: "subprocess.Popen[str]") -> str:
    """Return the next line that ``process`` prints."""
    assert process.stdout
    return process.stdout.readline()


def of_page(start: str) -> list[str]:
    """Return the words of the command on the page that begins with ``start``."""
    text = PAGE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^    ({re.escape(start)}.*) &$", text, flags=re.M)
    return shlex.split(found)
