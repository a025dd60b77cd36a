"""The driver works with a board's bitstream file, which is simulated at its pins.

One board is built here from source to file; the others in tests/verify.
"""

import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from bitlane.command_line.cli import DONE, main
from bitlane.device import Device
from bitlane.driver.driver import Driver
from bitlane_boards import boards
from bitlane_boards.readback.asc import Bitstream
from bitlane_boards.readback.ice40 import Ice40Netlist, extract
from bitlane_boards.readback.netlist import bitstream_model
from bitlane_boards.readback.pins import board_pins
from bitlane_sim.pins import GateModel
from cppsim.errors import SimulationError
from flips.copies import Flip, flipped, random_flips
from support.boards.asc import write
from support.boards.board_builds import built
from support.boards.session import SILENCE, connect, opened, validated
from support.sim.flip_copies import FlippedCopies

pytestmark = pytest.mark.slow

NAME = "hx8k"
BOARD = boards()[NAME]
PACKAGE = "ct256"
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


def shown_by_a_job(found: Ice40Netlist, flips: Sequence[Flip]) -> list[Flip]:
    """Return the ``flips`` that change the board's output levels during or after one operator."""
    model = FlippedCopies(found.netlist, "flips", [flip.table for flip in flips])
    port = opened(model, BOARD)
    a = np.random.default_rng(1).integers(0, 256, 500, np.uint8)
    link = connect(port, NAME)
    with link, Driver(link, timeout=SILENCE) as driver, Device(driver) as device:
        assert (device.bit_count(a) == np.bitwise_count(a)).all()
    port.close()
    return [flips[number] for number in sorted(model.diverged)]


def test_a_flipped_bit_in_the_file_is_caught(bitstream: Path, tmp_path: Path) -> None:
    """A short test does not notice every flip; out of a dozen, it notices one."""
    bits = Bitstream.read(bitstream)
    pins = {role: pin.package_pin for role, pin in board_pins(BOARD).items()}
    found = extract(bits, PACKAGE, pins)
    file = tmp_path / "flipped.bin"
    # A validation that passes takes long, so a single operator selects the flips worth one.
    for flip in shown_by_a_job(found, random_flips(found.cells, 12, seed=1)):
        with flipped(bits, flip):
            netlist = extract(bits, PACKAGE, pins).netlist
            try:
                model = GateModel(netlist, "flipped")
            except SimulationError:  # a loop of LUTs, which has no model
                continue
            caught = validated(model, BOARD, memory_bytes=1024)
            if not caught:
                continue
            # The flip must also be caught if it is read back from a file.
            write(bits, file)
        assert sum(a != b for a, b in zip(file.read_bytes(), bitstream.read_bytes(), strict=True))
        # What comes from a broken board depends on the session's random number.
        again = extract(Bitstream.read(file), PACKAGE, pins).netlist
        assert np.array_equal(again.luts, netlist.luts)
        assert np.array_equal(again.wires, netlist.wires)
        assert validated(bitstream_model(BOARD, file), BOARD, memory_bytes=1024)
        return
    pytest.fail("none of 12 flipped bits was caught")
