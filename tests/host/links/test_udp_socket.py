"""``udp:`` URLs and sockets of the system: each mistake is an error of one line."""

import errno
import socket
import sys
from collections.abc import Iterator
from random import Random
from time import monotonic
from typing import Any

import pytest

from bitlane.errors import BoardInUseError, LinkError
from bitlane.links import udp
from bitlane.links.datagram_socket import DatagramSocket, _calls
from bitlane.links.line import Batch
from bitlane.links.link import open_link as open_any_link
from bitlane.links.udp import open_link
from bitlane_rtl.abi.datagrams import DEFAULT_PORT
from support.host.network import NetworkBoard, network_board
from support.host.transfers import BASE

LATE = 60.0
"""Seconds within which a wait that ends by itself has ended on a busy computer."""


@pytest.fixture
def board() -> Iterator[NetworkBoard]:
    with network_board() as board:
        yield board


def test_the_default_port_and_the_name_reach_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    class Recorder(DatagramSocket):
        def __init__(self, address: tuple[str, int]) -> None:
            found.append(address)
            raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(udp, "DatagramSocket", Recorder)
    with pytest.raises(LinkError, match="no way to this address: Network is unreachable; check a"):
        open_link("udp://localhost")
    assert found == [("127.0.0.1", DEFAULT_PORT)]


def test_a_port_where_nothing_listens() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(LinkError) as caught:
        open_link(f"udp://127.0.0.1:{port}")
    message = str(caught.value)
    assert message.startswith(f"network address 127.0.0.1, port {port}, ")
    assert message.endswith(
        "nothing listens at this address and port; expected a board; check both"
    )


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EHOSTUNREACH, "the network has no way to this address: .*; check address, cable an"),
        (errno.ENETUNREACH, "the network has no way to this address: .*; check address, cable an"),
        (errno.EMSGSIZE, "the network carries less than 1472 bytes in a datagram; expected an MTU"),
        (errno.EACCES, "the system refuses this address: .*; expected that of one board"),
        (errno.EPERM, "the network failed: .*Operation not permitted; open it again"),
    ],
)
def test_errors_of_the_network_under_way(
    number: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, errno.errorcode[number] + " Operation not permitted")

    with network_board() as board:
        with open_link(board.url) as link:
            monkeypatch.setattr(DatagramSocket, "send", fail)
            with pytest.raises(LinkError, match=message):
                link.write(0x1000, b"lost")
        monkeypatch.undo()
        with open_link(f"{board.url}?takeover=1") as link:
            link.write(0x1000, b"fine")


def test_datagrams_for_which_the_system_has_no_room_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = [errno.ENOBUFS, errno.EAGAIN, errno.EPERM]

    class Full(socket.socket):
        def send(self, *_: object) -> int:
            raise OSError(numbers.pop(0), "no room")

    with network_board() as board:
        monkeypatch.setattr(socket, "socket", Full)
        opened = DatagramSocket(("127.0.0.1", board.port))
        for _ in range(2):
            opened.send([Batch(b"lost", 4)])
        with pytest.raises(PermissionError):
            opened.send([Batch(b"lost", 4)])
        opened.close()
    assert not numbers


@pytest.mark.parametrize(
    ("batches", "calls"),
    [
        ([(30, 10), (20, 10)], [50]),
        ([(30, 10), (25, 10), (10, 10)], [55, 10]),
        ([(1472, 1472), (32, 32), (1472, 1472), (32, 32)], [1504, 1504]),
        ([(32, 32), (1472, 1472)], [32, 1472]),
        ([(20, 10), (8, 4)], [20, 8]),
        ([(400, 10), (40, 10), (10, 10)], [440, 10]),
    ],
)
def test_a_call_has_datagrams_of_equal_size_but_the_last(
    batches: list[tuple[int, int]], calls: list[int]
) -> None:
    """``batches``: bytes, and bytes of a datagram; ``calls``: bytes."""
    assert [sum(map(len, x)) for x, _ in _calls([Batch(bytes(n), k) for n, k in batches])] == calls


def test_no_fragments_are_sent_on_linux() -> None:
    opened = DatagramSocket(("127.0.0.1", 9))
    discover, do = 10, 2
    assert sys.platform != "linux" or opened._socket.getsockopt(socket.IPPROTO_IP, discover) == do
    opened.close()


def test_the_hosts_port_is_never_the_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board drops what comes from its own port, which the system may choose for a host, too."""
    chosen = iter([True, True, False])

    class Unlucky(socket.socket):
        def connect(self, address: Any) -> None:
            if next(chosen):
                self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.bind(("127.0.0.2", address[1]))
            super().connect(address)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as board:
        board.bind(("127.0.0.1", 0))
        monkeypatch.setattr(socket, "socket", Unlucky)
        opened = DatagramSocket(board.getsockname())
        assert next(chosen, None) is None
        assert opened._socket.getsockname()[1] != board.getsockname()[1]
        opened.close()


def test_a_board_in_use_is_an_error_that_names_the_address(board: NetworkBoard) -> None:
    with open_link(board.url) as link:
        with pytest.raises(BoardInUseError, match=f"^network address 127.0.0.1, port {board.port}"):
            open_link(board.url)
        link.write(BASE, b"fine")


def test_options_reach_the_link_and_the_host_may_be_a_name() -> None:
    with (
        network_board() as board,
        open_any_link(f"udp://localhost:{board.port}?timeout=3.5&takeover=1") as link,
    ):
        start = f"network address localhost, 127.0.0.1, port {board.port}, "
        assert link.description.startswith(start)
        assert vars(link)["_timeout"] == 3.5


# --- how datagrams pass to and from the system ----------------------------------------------------


def test_the_way_of_datagrams_is_shown(board: NetworkBoard) -> None:
    with open_link(board.url) as link:
        assert link.description.split(", ")[2] in (
            "UDP_SEGMENT and UDP_GRO",
            "UDP_SEGMENT",
            "plain datagrams",
        )
    plain = DatagramSocket(("127.0.0.1", board.port), batches=False)
    assert plain.description == "plain datagrams"
    plain.close()


@pytest.mark.parametrize("batches", [True, False])
def test_datagrams_of_any_sizes_arrive_one_by_one(batches: bool) -> None:
    sizes = [20, 20, 8, 8, 8, 1472, 20]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        opened_socket = DatagramSocket(peer.getsockname(), batches=batches)
        opened_socket.send([Batch(b"hello", 5)])
        _, sender = peer.recvfrom(10)
        sent = [bytes([k]) * size for k, size in enumerate(sizes)]
        for each in sent:
            peer.sendto(each, sender)
        arrived: list[bytes] = []
        start = monotonic()
        while len(arrived) < len(sent) and monotonic() - start < LATE:
            arrived += [bytes(x) for batch in opened_socket.receive(LATE) for x in batch.packets()]
        assert arrived == sent
        # Nobody waits for datagrams that are there.
        assert monotonic() - start < LATE
        for seconds in (0.0, 0.05, 0.0, 0.1):
            start = monotonic()
            assert opened_socket.receive(seconds) == [], "no datagram is left"
            assert monotonic() - start >= 0.9 * seconds
        opened_socket.close()


def test_empty_datagrams_do_not_hold_a_call() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        plain = DatagramSocket(peer.getsockname(), batches=False)
        plain.send([Batch(b"hello", 5)])
        _, sender = peer.recvfrom(10)
        for each in (b"", b"", b"first", b"", b"second"):
            peer.sendto(each, sender)
        calls = [[bytes(batch.content) for batch in plain.receive(1.0)] for _ in range(4)]
        plain.close()
    # Each call ends with an empty one, however many there are.
    assert calls == [[], [], [b"first"], [b"second"]]


def test_a_card_that_cannot_cut_gets_plain_datagrams(board: NetworkBoard) -> None:
    tried = []

    class Card:
        """A socket on a network card that cannot compute checksums."""

        def __init__(self, real: socket.socket) -> None:
            self._real = real

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

        def sendmsg(self, *arguments: object) -> int:
            tried.append(arguments)
            raise OSError(5, "Input/output error")

    data = Random(2).randbytes(50_000)
    with open_link(board.url) as link:
        vars(link._socket).update(_socket=Card(link._socket._socket), _segments=True)
        link.write(BASE, data)
        assert "UDP_SEGMENT" not in link._socket.description
    assert bytes(board.rules.memory_device.memory[:50_000]) == data
    assert len(tried) == 1


def test_a_port_that_is_closed_under_way() -> None:
    with network_board() as board:
        link = open_link(board.url)
    with pytest.raises(LinkError, match="nothing listens at this address and port; expected a"):
        link.write(BASE, bytes(5000))
