"""The commands with ``--device udp://...``: a model board in front of the simulated device."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bitlane
from bitlane.command_line.cli import DONE, main
from bitlane.links.link import open_link
from bitlane_sim.device.link import SimulatorLink
from support.host.network import Cable, NetworkBoard, SimulatedDevice, network_board
from support.system.devices import NARROW

Capture = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def board() -> Iterator[NetworkBoard]:
    up, down = Cable(loss=0.002, seed=1), Cable(loss=0.002, seed=2)
    with open_link(NARROW) as link:
        assert isinstance(link, SimulatorLink)
        with network_board(SimulatedDevice(link), up, down) as board:
            yield board


def test_arrays_are_computed_by_a_board_on_the_network(board: NetworkBoard) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(0, 1 << 32, (3, 500), dtype=np.uint32) for _ in range(2))
    with bitlane.open(board.url) as device:
        np.testing.assert_array_equal(device.bit_xor(a, b), a ^ b)
        x, y = device.asarray(a), device.asarray(b)
        np.testing.assert_array_equal(np.asarray(x & ~y), a & ~b)


def test_a_model_file_runs_on_a_board_on_the_network(board: NetworkBoard, capsys: Capture) -> None:
    assert main(["run", str(EXAMPLES / "bit_xor.json"), "--device", board.url]) == DONE
    assert "Check 'xor': 4 bytes equal" in capsys.readouterr().out


def test_info_shows_the_address(board: NetworkBoard, capsys: Capture) -> None:
    assert main(["info", board.url]) == DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"device          network address 127.0.0.1, port {board.port}, ")
    assert lines[-1].startswith("link            ")


@pytest.mark.slow
def test_a_board_on_the_network_validates(board: NetworkBoard, capsys: Capture) -> None:
    assert main(["validate", board.url]) == DONE
    assert "All 23 checks passed" in capsys.readouterr().out
