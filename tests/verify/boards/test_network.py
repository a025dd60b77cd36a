"""A board at its simulated pins of Ethernet: through the system's sockets, and its rate."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

from bitlane.command_line.cli import DONE, main
from bitlane.device import Device
from bitlane.driver.driver import Driver
from bitlane.model_file.results import busy_cycles
from bitlane_boards import boards
from bitlane_boards.board import Board, MemoryKind
from bitlane_boards.readback.netlist import rtl_model
from bitlane_rtl.abi import Op
from bitlane_rtl.abi.datagrams import DATAGRAM_BYTES
from bitlane_sim.campaigns.commands import move
from bitlane_sim.pins.cable import CableFaults
from support.boards.board_builds import readback
from support.boards.session import SILENCE, connect_network, networked
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, AT_THE_PINS]

BOARD, BANKS = boards()["colorlight-i5"], boards()["ecpix5"]

LINE_RATE = 125e6 * DATAGRAM_BYTES / (DATAGRAM_BYTES + 66)
"""Bytes a second of datagrams: each has 66 byte times of headers, FCS, preamble and gap."""


def test_the_routed_netlist_computes() -> None:
    network = networked(readback(BOARD.name), BOARD)
    a, b = (np.random.default_rng(seed).integers(0, 256, 100, np.uint8) for seed in range(2))
    link = connect_network(network, BOARD.name)
    with link, Driver(link, timeout=SILENCE) as driver, Device(driver) as device:
        assert (device.bit_xor(a[1:], b[:-1]) == a[1:] ^ b[:-1]).all()
        assert (device.bit_count(a) == np.bitwise_count(a)).all()
    assert network.simulation.illegal == 0
    network.close()


@pytest.mark.parametrize(
    ("faults", "size", "shares"),
    [
        (CableFaults(), 1 << 20, (0.95, 0.95, 0.9)),
        (CableFaults(lose=0.02, double=0.02, reorder=0.02, damage=0.02), 64 << 10, (0.5, 0.4, 0.3)),
    ],
    ids=["good cable", "bad cable"],
)
def test_bytes_come_back_at_the_rate_of_the_line(
    faults: CableFaults,
    size: int,
    shares: tuple[float, float, float],
    record_property: Callable[[str, object], None],
) -> None:
    """``shares``: least rates up, down and each way at once, in parts of the line's."""
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8).tobytes()
    network = networked(rtl_model(BOARD), BOARD, faults=faults)
    with connect_network(network, BOARD.name) as link:
        seconds = [network.simulation.seconds]
        link.write(0, data)
        seconds.append(network.simulation.seconds)
        assert link.read(0, size).tobytes() == data
        seconds.append(network.simulation.seconds)
        half = size // 2
        (read,) = link.exchange([(0, data[half:])], [(half, half)])
        assert read.tobytes() == data[half:]
        seconds.append(network.simulation.seconds)
    assert network.simulation.illegal == 0
    network.close()
    sizes = size, size, half
    for way, (begin, end) in enumerate(pairwise(seconds)):
        rate = sizes[way] / (end - begin)
        name = ("up", "down", "both at once, each")[way]
        shown = f"{rate / 1e6:.1f} MB/s, {rate / LINE_RATE:.3f} of the line"
        record_property("report", f"network at the pins, {size >> 10} KiB {name}: {shown}")
        assert rate >= shares[way] * LINE_RATE


def test_hamming_of_resident_rows(record_property: Callable[[str, object], None]) -> None:
    """Cycles are exact. 64 MiB are computed from them: the board has 8 MiB."""
    network = networked(rtl_model(BOARD), BOARD)
    with connect_network(network, BOARD.name) as link, Driver(link, timeout=SILENCE) as driver:
        read_cycles = busy_cycles(driver)
        assert read_cycles is not None
        with Device(driver) as device:
            for width, least in ((64, 1.35), (1024, 1.91)):
                x = np.random.default_rng(1).integers(
                    0, 256, ((64 << 10) // width, width), np.uint8
                )
                rows, query = device.asarray(x), device.asarray(x[0])
                before = read_cycles()
                distances = device.hamming(rows, query).get()
                share = x.size / (read_cycles() - before)
                assert (distances == np.bitwise_count(x ^ x[0]).sum(axis=1)).all()
                seconds = (64 << 20) / share / BOARD.clock_hz
                record_property(
                    "report",
                    f"hamming of resident rows of {width} bytes: {share:.3f} bytes a cycle;"
                    f" 64 MiB in {seconds:.2f} s, computed",
                )
                assert share > least
    network.close()


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
            assert main(["validate", "--quick", "--memory", "1KiB", url]) == DONE
        finally:
            simulated.send_signal(signal.SIGINT)
    assert "All 23 checks passed" in capsys.readouterr().out
    assert simulated.returncode == 0
    datagrams = [packet for packet in rdpcap(str(file)) if UDP in packet]
    assert len({packet[UDP].dport for packet in datagrams}) == 2
    assert len(datagrams) > 1000
