"""The driver works with a board's bitstream file, which is simulated at its pins.

One board is built here from source to file; the others in tests/verify.
"""

import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitlane.command_line.cli import DONE, main
from bitlane_boards import boards
from support.boards.board_builds import built

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]

NAME = "hx8k"
BOARD = boards()[NAME]
EXAMPLES = Path(__file__).parents[2] / "examples"

DEADLINE = 300
"""Time limit of a program that should end, in seconds."""

MAIN = "import sys; from bitlane.command_line.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def bitstream() -> Path:
    return built(BOARD) / f"{NAME}.bin"


class Simulated:
    """`bitlane simulate` in a separate process; ``name`` is the path of its terminal."""

    def __init__(self, *arguments: str) -> None:
        words = [sys.executable, "-c", MAIN, "simulate", *arguments]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        self.name = self.process.stdout.readline().decode().strip() if ready else ""

    def stop(self) -> tuple[int, str]:
        """Terminate the process as a service manager does; return its exit code and its log."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, said.decode()


@pytest.fixture
def simulated(bitstream: Path) -> Iterator[Simulated]:
    run = Simulated(NAME, "--bitstream", str(bitstream))
    yield run
    if run.process.poll() is None:
        run.process.kill()
        run.process.communicate()


def test_driver_and_bitstream_work_together(
    simulated: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated.name.startswith("/dev/"), simulated.stop()
    device = f"serial:{simulated.name}?baud={BOARD.baud}"
    for model in ("bit_not", "bit_xor", "bit_count", "hamming", "in_place", "strided"):
        code = main(["run", str(EXAMPLES / f"{model}.json"), "--device", device])
        printed = capsys.readouterr()
        assert code == DONE, (model, printed)
        assert "equal" in printed.out
    code = main(["validate", device, "--quick", "--memory", "1KiB"])
    assert code == DONE, capsys.readouterr()
    code, said = simulated.stop()
    assert code == 0, said
    assert f"the PLL, set for {BOARD.clock_hz // 10**6} MHz" in said
    assert "0 framing errors" in said
