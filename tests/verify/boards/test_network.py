"""A board at its simulated pins of Ethernet: its memories, the system's sockets."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

from bitlane.command_line import DONE, main
from bitlane.driver import Driver
from bitlane_boards import boards
from bitlane_boards.board import Board, MemoryKind
from bitlane_boards.readback import rtl_model
from bitlane_rtl.abi import Op
from bitlane_sim.campaigns.commands import move
from support.boards.session import SILENCE, connect_network, networked
from support.verdicts import AT_THE_PINS

pytestmark = [
    pytest.mark.slow,
    AT_THE_PINS,
    pytest.mark.judges("bitlane.command_line", "bitlane_sim.campaigns"),
]

BOARD, BANKS = boards()["colorlight-i5"], boards()["ecpix5"]


@pytest.mark.rotates(1)
@pytest.mark.parametrize(
    "board",
    [BOARD, BANKS, replace(BANKS, memory=MemoryKind.BLOCK)],
    ids=["SDRAM", "banks", "one RAM"],
)
def test_the_host_moves_data_while_the_engine_computes(board: Board) -> None:
    """All addresses are odd, so that both write parts of beats."""
    a, b, y, written, read, size = 0x1, 0x10003, 0x20005, 0x30007, 0x38009, 0xFF00
    x, z = (np.random.default_rng(seed).integers(0, 256, size, np.uint8) for seed in range(2))
    sent, stored = x[: size // 4], z[: size // 4]
    network = networked(rtl_model(board), board)
    with connect_network(network, board.name) as link, Driver(link, timeout=SILENCE) as driver:
        driver.exchange([(a, x), (b, z), (y - 1, bytes(size + 2)), (read, stored)], [])
        (seen,) = driver.run(
            [move(Op.XOR, size, a, b, y)],
            meanwhile=[(written, sent)],
            reads=[(read, len(stored))],
        )
        assert (seen == stored).all()
        assert (driver.read(written, len(sent)) == sent).all()
        result = driver.read(y - 1, size + 2)
        assert (result[1:-1] == x ^ z).all()
        assert result[0] == result[-1] == 0
    assert network.simulation.illegal == 0
    network.close()


def test_validate_through_a_socket(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "line.pcap"
    words = ["-m", "bitlane", "simulate", BOARD.name, "--pcap", str(file), "--deadline", "500"]
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ) as simulated:
        assert simulated.stdout is not None
        try:
            url = simulated.stdout.readline().strip()
            assert url.startswith("udp://127.0.0.1:")
            assert main(["info", url]) == DONE
            line = "line            1000 Mbit/s, full duplex; 0 damaged frames at the board\n"
            assert line in capsys.readouterr().out
            assert main(["validate", "--quick", "--memory", "1KiB", url]) == DONE
        finally:
            simulated.send_signal(signal.SIGINT)
    assert "All 23 checks passed" in capsys.readouterr().out
    assert simulated.returncode == 0
    datagrams = [packet for packet in rdpcap(str(file)) if UDP in packet]
    # Those of the two commands, and the board's.
    assert len({packet[UDP].dport for packet in datagrams}) == 3
    assert len(datagrams) > 1000
