"""A simulated board behind a UDP socket: datagrams arrive, and a recording shows the frames.

A board whose time stands still loses the session of a client that was killed.
"""

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import ARP
from scapy.packet import Raw
from scapy.utils import PcapReader

from bitlane.errors import BoardInUseError
from bitlane.links import DatagramLine
from bitlane.links.udp import open_link
from bitlane_boards.pins import (
    Cable,
    CableFaults,
    HostAddresses,
    SimulatedNetwork,
    SimulatedSocket,
    UdpServer,
    bound_socket,
    content_of,
    framed,
    udp,
)
from bitlane_rtl.abi import DEFAULT_PORT, QUERY
from cppsim.errors import SimulationError
from support.ethernet.line import BOARD
from support.ethernet.verilog import looped
from support.host.network import ServedRules

pytestmark = pytest.mark.any_face

DATAGRAMS = [random.Random(size).randbytes(size) for size in range(4, 1473, 52)]


@contextmanager
def serving(network: Any, seconds: float) -> Iterator[UdpServer]:
    """Serve in a thread until the block ends."""
    server = UdpServer(network, bound_socket())
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.serve(seconds)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server
    finally:
        stop.set()
        thread.join()
        server.close()


@contextmanager
def served(**options: Any) -> Iterator[UdpServer]:
    network = SimulatedNetwork(looped(), BOARD, **options)
    network.resolve()
    with closing(network), serving(network, 0.05) as server:
        yield server


def client_of(server: UdpServer) -> socket.socket:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
    return client


def arrived(client: socket.socket, least: int) -> list[bytes]:
    """Return the datagrams up to a silence after the ``least``-th."""
    found: list[bytes] = []
    while True:
        client.settimeout(0.5 if len(found) >= least else 60)
        try:
            found.append(client.recv(2000))
        except TimeoutError:
            return found


@pytest.mark.slow
def test_a_closed_socket_of_a_link_refuses_as_the_systems_does() -> None:
    network = SimulatedNetwork(looped(), BOARD)
    opened: Any = SimulatedSocket(network)
    opened.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as real:
        real.close()
        with pytest.raises(OSError) as expected:
            real.send(b"")
    for call in (lambda: opened.send([(b"data", 4)]), lambda: opened.receive(0.0)):
        with pytest.raises(OSError, match="closed") as refused:
            call()
        assert refused.value.errno == expected.value.errno
    network.close()


@pytest.mark.slow
def test_each_client_gets_its_datagrams(tmp_path: Path) -> None:
    file = tmp_path / "line.pcap"
    with served(pcap=file) as server, client_of(server) as one, client_of(server) as other:
        for data in DATAGRAMS:
            one.send(data)
        other.send(b"other")
        one.send(bytes(1473))  # would come in fragments
        assert arrived(one, len(DATAGRAMS)) == DATAGRAMS
        assert arrived(other, 1) == [b"other\0\0\0"]
        ports = {one.getsockname()[1], other.getsockname()[1]}
    with PcapReader(str(file)) as recorded:
        packets = list(recorded)
    assert len(packets) == 2 * (1 + len(DATAGRAMS) + 1)
    assert [packet[ARP].op for packet in packets[:2]] == [1, 2]
    to_board = [packet for packet in packets[2:] if packet[UDP].dport == BOARD.port]
    back = [packet for packet in packets[2:] if packet[UDP].sport == BOARD.port]
    assert {packet[UDP].sport for packet in to_board} == ports
    assert [packet[Raw].load for packet in to_board] == [*DATAGRAMS, b"other"]
    assert len(back) == len(to_board)
    times = [packet.time for packet in packets]
    assert sorted(times[::2]) == times[::2]
    for packet in packets[2:]:
        # scapy computes the checksums anew.
        sums = packet[UDP].chksum
        del packet[UDP].chksum
        assert type(packet)(bytes(packet))[UDP].chksum == sums


@pytest.mark.slow
def test_a_bad_cable_loses_doubles_reorders_and_damages() -> None:
    faults = CableFaults(lose=0.1, double=0.1, reorder=0.1, damage=0.1, seed=3)
    many = [number.to_bytes(4, "little") for number in range(300)]
    with served(faults=faults) as server, client_of(server) as client:
        for data in many:
            client.send(data)
        found = arrived(client, 200)
        cables = server.network.outward, server.network.inward
    # Damaged ones are dropped for their FCS; nothing else changes a datagram.
    assert set(found) < set(many)
    assert len(set(found)) < len(found)
    assert found != sorted(found, key=lambda data: int.from_bytes(data, "little"))
    for cable in cables:
        for count in (cable.lost, cable.doubled, cable.reordered, cable.damaged):
            assert 10 < count < 60


@pytest.mark.slow
def test_the_faults_depend_on_the_seed_alone() -> None:
    def counts(seed: int) -> tuple[list[bytes], int]:
        cable = Cable(CableFaults(lose=0.2, damage=0.2, reorder=0.2, seed=seed), "x")
        arrive = [frame for number in range(200) for frame in cable.through(bytes([number, 1]))]
        return arrive, cable.lost

    assert counts(1) == counts(1) != counts(2)


@pytest.mark.slow
def test_a_board_that_does_not_answer_is_an_error() -> None:
    network = SimulatedNetwork(looped(), BOARD, faults=CableFaults(lose=1.0))
    with pytest.raises(SimulationError, match=r"192\.168\.1\.50 does not answer ARP"):
        network.resolve()
    network.close()


@pytest.mark.slow
def test_a_port_that_is_taken_is_an_error() -> None:
    with bound_socket() as other, pytest.raises(OSError, match="in use"):
        bound_socket(other.getsockname()[1])


@pytest.mark.slow
def test_wrong_packets_of_a_board_are_not_passed_on() -> None:
    host = HostAddresses(BOARD)
    board = HostAddresses(BOARD, mac=BOARD.mac)
    good = bytearray(board.datagram(host.mac, 5000, b"data"))
    good[26:34] = good[30:34] + good[26:30]  # from the board to the host
    good[34:38] = good[36:38] + (5000).to_bytes(2, "big")
    assert host.datagram_in(bytes(good)) == (5000, b"data")
    for place in (0, 12, 14, 16, 23, 24, 33, 36, 39, 41, 43):
        bad = bytearray(good)
        bad[place] ^= 1
        assert host.datagram_in(bytes(bad)) is None, place
    frame = framed(bytes(good))
    assert content_of(frame) == bytes(good).ljust(60, b"\0")
    assert host.datagram_in(frame[:-4]) == (5000, b"data")
    assert content_of(frame[:-1] + bytes([frame[-1] ^ 1])) is None


# --- sessions -------------------------------------------------------------------------------------


SECONDS = 20
BASE = 0x1000


class StillNetwork:
    """The part of a `SimulatedNetwork` that the server uses; it loses ``lost`` GOODBYEs first."""

    def __init__(self) -> None:
        self.rules = ServedRules(clock=lambda: 0.0)
        self.port = DEFAULT_PORT
        self.unsent = 0
        self.quiet = True
        self.lost = 0
        self.farewells = 0
        self._arrived: list[tuple[int, bytes]] = []

    def send(self, port: int, data: bytes) -> None:
        self.quiet = False
        self.farewells += port == udp._GOODBYE_PORT
        if data.startswith(QUERY):
            self._arrived.append((port, data))
        elif port != self.port and (port != udp._GOODBYE_PORT or self.farewells > self.lost):
            self._arrived += [(port, answer) for answer in self.rules.datagrams(data)]

    def advance(self, seconds: float) -> list[tuple[int, bytes]]:
        arrived, self._arrived = self._arrived, []
        self.quiet = True
        return arrived


@contextmanager
def still() -> Iterator[tuple[StillNetwork, str]]:
    """Serve a network whose time stands still; yield it and the URL."""
    network: Any = StillNetwork()
    with serving(network, 0.02) as server:
        yield network, server.url


def freed(url: str) -> bool:
    """Return whether the board can be opened without a takeover, after a while."""
    for _ in range(100 * SECONDS):
        try:
            open_link(url).close()
        except BoardInUseError:
            sleep(0.01)
        else:
            return True
    return False


@pytest.mark.parametrize("lost", [0, 2])
def test_the_session_of_a_killed_client_ends(lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with still() as (network, url):
        network.lost = lost
        link = open_link(url)
        link.write(BASE, b"mine")
        with pytest.raises(BoardInUseError):
            open_link(url)
        link._socket.close()
        monkeypatch.setattr(udp, "SESSION_SECONDS", 0.05)
        # The attempts of others do not keep it alive.
        assert freed(url)


def test_an_idle_client_goes_on_unless_another_host_came(monkeypatch: pytest.MonkeyPatch) -> None:
    with still() as (network, url), open_link(f"{url}?keepalive=0") as link:
        link.write(BASE, b"mine")
        monkeypatch.setattr(udp, "SESSION_SECONDS", 0.02)
        for _ in range(100 * SECONDS):
            if not network.rules.alive:
                break
            sleep(0.01)
        assert not network.rules.alive
        monkeypatch.undo()  # it would end again before a busy computer comes to look
        assert link.read(BASE, 4).tobytes() == b"mine"
        assert network.rules.alive


def test_a_query_is_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    with still() as (_, url), open_link(f"{url}?keepalive=0") as link:
        link.write(BASE, b"mine")
        query = QUERY + bytes(12)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(SECONDS)
            asking.sendto(query, ("127.0.0.1", int(url.rpartition(":")[2])))
            assert asking.recv(100) == query
        monkeypatch.setattr(udp, "SESSION_SECONDS", 0.05)
        link._socket.close()
        assert freed(url)


@pytest.mark.parametrize("of_the_url", [True, False])
def test_the_port_of_the_url_is_the_boards(of_the_url: bool) -> None:
    """The board drops what comes from its own port, which is that of the URL."""
    with still() as (network, url):
        port = int(url.rpartition(":")[2])
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with peer:
            peer.settimeout(0.2 if of_the_url else SECONDS)
            peer.bind(("127.0.0.2", port if of_the_url else network.port))
            peer.sendto(DatagramLine(1).encode_hello(0, 0), ("127.0.0.1", port))
            if of_the_url:
                with pytest.raises(TimeoutError):
                    peer.recv(100)
            else:
                assert peer.recv(100)
