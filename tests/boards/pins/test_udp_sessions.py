"""A simulated board, whose time stands still, loses the session of a client that was killed."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any

import pytest

from bitlane.errors import BoardInUseError
from bitlane.links.datagrams import DatagramLine
from bitlane.links.udp import open_link
from bitlane_boards.pins import udp
from bitlane_boards.pins.udp import UdpServer, bound_socket
from bitlane_rtl.abi.datagrams import DEFAULT_PORT
from bitlane_rtl.abi.queries import QUERY
from support.host.network import ServedRules

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
def served() -> Iterator[tuple[StillNetwork, str]]:
    """Serve in a thread until the block ends; yield the network and the URL."""
    network: Any = StillNetwork()
    server = UdpServer(network, bound_socket())
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.serve(0.02)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield network, server.url
    finally:
        stop.set()
        thread.join()
        server.close()


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
    with served() as (network, url):
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
    with served() as (network, url), open_link(f"{url}?keepalive=0") as link:
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
    with served() as (_, url), open_link(f"{url}?keepalive=0") as link:
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
    with served() as (network, url):
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
