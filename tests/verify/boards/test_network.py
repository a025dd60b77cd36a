"""A board at its simulated pins of Ethernet: its memories, sockets, addresses and rates.

It is found by a query to all, and set to another address. Rates are those of the line, and of the
board's memory.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

from bitlane import Device
from bitlane.command_line import DONE, main
from bitlane.driver import Driver
from bitlane.links import UdpLink
from bitlane.model_file import busy_cycles
from bitlane_boards import boards
from bitlane_boards.board import Board, MemoryKind
from bitlane_boards.pins import CableFaults, NoAnswerError, SimulatedNetwork
from bitlane_boards.readback import rtl_model
from bitlane_rtl.abi import CONTROL_BASE, LINE_STATUS, LINE_STATUS_OFFSET, Op
from bitlane_sim.commands import move
from support.boards.network_rates import BOARD, LINE_RATE, measured
from support.boards.session import SILENCE, connect_network, networked
from support.host.network import query_of
from support.verdicts import AT_THE_PINS

pytestmark = [
    pytest.mark.slow,
    AT_THE_PINS,
    pytest.mark.judges("bitlane.command_line", "bitlane.model_file"),
    pytest.mark.judges("bitlane_sim.commands", "bitlane_sim.device", "bitlane_sim.figures"),
]

BANKS = boards()["ecpix5"]


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


PORT = 50_001
OLD, NEW = "192.168.1.50", "10.66.0.9"


@pytest.fixture(scope="module")
def network() -> Iterator[SimulatedNetwork]:
    made = networked(rtl_model(BOARD), BOARD)
    yield made
    assert made.simulation.illegal == 0
    made.close()


def mac() -> bytes:
    assert BOARD.ethernet is not None
    return BOARD.ethernet.addresses.mac


def asked(network: SimulatedNetwork, query: bytes) -> list[tuple[int, bytes]]:
    """Return the datagrams that answer ``query``, sent to all."""
    network.send_to_all(PORT, query)
    found = []
    while not network.quiet:
        found += network.advance(1.0)
    return found


def expect_silence(network: SimulatedNetwork, ip: str) -> None:
    """Expect that nobody answers ARP at ``ip``."""
    network.move(IPv4Address(ip))
    with pytest.raises(NoAnswerError, match=f"{ip} does not answer ARP"):
        network.resolve(3)


def connected(network: SimulatedNetwork, ip: str) -> UdpLink:
    network.move(IPv4Address(ip))
    network.resolve(3)
    return connect_network(network, BOARD.name)


def test_a_board_is_set_to_another_address_and_back(network: SimulatedNetwork) -> None:
    data = Random(1).randbytes(3000)
    answer = query_of()[:8] + mac() + query_of()[14:]
    assert asked(network, query_of()) == [(PORT, answer)]
    with connected(network, OLD) as link:
        link.write(0x1001, data)
    expect_silence(network, NEW)
    for before, after in ((OLD, NEW), (NEW, OLD)):
        # Malformed queries set nothing.
        for wrong in (
            query_of(mac(), after)[:-1],
            query_of(mac(), after) + b"\0",
            query_of(mac()[:-1] + b"\0", after),
            query_of(mac(), "127.0.0.1"),
            query_of(mac(), "255.255.255.255"),
            b"\0\0\0\0bind" + query_of(mac(), after)[8:],
        ):
            assert asked(network, wrong) == []
        with connected(network, before) as link:
            assert link.read(0x1001, len(data)).tobytes() == data
        assert asked(network, query_of(mac(), after)) == [(PORT, query_of(mac(), after))]
        expect_silence(network, before)
        with connected(network, after) as link:
            assert link.read(0x1001, len(data)).tobytes() == data


def test_the_status_of_the_line_is_in_the_window(network: SimulatedNetwork) -> None:
    with connected(network, OLD) as link:

        def status() -> dict[str, int]:
            data = link.read(CONTROL_BASE + LINE_STATUS_OFFSET, 4).tobytes()
            word = int.from_bytes(data, "little")
            return {name: bits.extract(word) for name, bits in LINE_STATUS.items()}

        before = status()
        assert before == {
            "UP": 1, "SPEED": 2, "FULL_DUPLEX": 1, "PRESENT": 1, "DAMAGED": before["DAMAGED"]
        }  # fmt: skip
        network.simulation.report(mbits=100, full_duplex=False)
        for number in range(3):
            network.simulation.send(bytes(64 + number))
        link.write(0x2000, bytes(4))
        now = status()
        assert (now["UP"], now["SPEED"], now["FULL_DUPLEX"]) == (1, 1, 0)
        assert now["DAMAGED"] == before["DAMAGED"] + 3
        # Another word of the window is the engine's.
        assert link.read(CONTROL_BASE, 4).tobytes() == b"LTIB"
        network.simulation.report()


@pytest.mark.parametrize(
    ("faults", "size", "shares"),
    [
        (CableFaults(), 256 << 10, (0.95, 0.95, 0.9)),
        (
            CableFaults(lose=0.02, double=0.02, reorder=0.02, damage=0.02),
            512 << 10,
            (0.25, 0.2, 0.15),
        ),
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
    rates = measured(faults, size).ways
    for (name, rate), least in zip(rates.items(), shares, strict=True):
        shown = f"{rate / 1e6:.1f} MB/s, {rate / LINE_RATE:.3f} of the line"
        record_property("report", f"network at the pins, {size >> 10} KiB {name}: {shown}")
        assert rate >= least * LINE_RATE


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
