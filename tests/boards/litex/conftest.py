"""A simulated SoC of LiteX behind ``litex_server``, for all tests of this folder."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Simulated:
    """The server's port, and the folder of the SoC's build."""

    port: int
    folder: Path

    @property
    def csr(self) -> Path:
        return self.folder / "csr.csv"

    def url(self, csr: Path | None = None, options: str = "") -> str:
        return f"litex://localhost:{self.port}?csr={csr or self.csr}{options}"


@pytest.fixture(scope="session")
def soc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """The simulated SoC, as its command builds and runs it."""
    folder = tmp_path_factory.mktemp("litex")
    command = [sys.executable, "-m", "bitlane_boards.litex.simulated", str(folder), "--port", "0"]
    with served(command, folder) as started:
        yield started


@contextmanager
def served(command: list[str], folder: Path) -> Iterator[Simulated]:
    """Run the simulation and ``litex_server``, each on a port that is free."""
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as bench:
        assert bench.stdout
        assert bench.stdin
        (uart,) = re.findall(r"port (\d+)", bench.stdout.readline())
        # litex_server has no way to choose a free port; the next one rarely is taken.
        port = int(uart) + 1
        words = ["--uart", "--uart-port", f"socket://localhost:{uart}", "--bind-port", str(port)]
        with subprocess.Popen(
            [sys.executable, "-u", "-m", "litex.tools.litex_server", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server:
            try:
                assert server.stdout
                assert "tcp port" in server.stdout.readline()
                time.sleep(0.2)  # It listens a moment later.
                yield Simulated(port, folder)
            finally:
                server.terminate()
                bench.stdin.close()
