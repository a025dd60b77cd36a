"""``udp:`` URLs and sockets of the system: each mistake is an error of one line.

Boards are found by a query to all stations, on the loopback interface.
"""

import errno
import socket
import sys
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address
from random import Random
from time import monotonic
from typing import Any

import pytest

from bitlane.errors import BoardInUseError, LinkError
from bitlane.links import discovery, udp
from bitlane.links.datagram_socket import DatagramSocket, _calls
from bitlane.links.discovery import (
    FoundBoard,
    Interface,
    broadcast_interfaces,
    find_boards,
    set_address,
)
from bitlane.links.line import Batch
from bitlane.links.link import open_link as open_any_link
from bitlane.links.udp import open_link
from bitlane_rtl.abi.datagrams import DEFAULT_PORT
from support.host.network import NetworkBoard, network_board
from support.host.queries import LOOPBACK, SHORT, LocalBoard, LocalNetwork, query_of
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


# --- discovery ------------------------------------------------------------------------------------

MACS = [bytes.fromhex(f"02626974{number:04x}") for number in range(4)]


def test_several_boards_are_found_by_address() -> None:
    boards = [LocalBoard(f"127.0.0.{12 - number}", mac) for number, mac in enumerate(MACS)]
    with LocalNetwork(*boards) as network:
        found = network.find()
    assert found == [
        FoundBoard(IPv4Address(each.ip), each.mac, LOOPBACK) for each in reversed(boards)
    ]
    assert all(each.heard[0][:14] == query_of()[:14] for each in boards)
    assert all(each.heard[0][16:] == bytes(4) for each in boards)


def test_a_lost_query_is_sent_again() -> None:
    board = LocalBoard("127.0.0.5", MACS[0], deaf=3)
    with LocalNetwork(board) as network:
        assert len(network.find(seconds=4 * SHORT)) == 1
        assert len(set(board.heard[:4])) == 1


def test_nobody_answers_until_the_deadline() -> None:
    with LocalNetwork() as network:
        start = monotonic()
        assert find_boards([LOOPBACK], SHORT, port=network.port) == []
        assert monotonic() - start >= SHORT


def test_a_board_that_two_interfaces_reach_is_one() -> None:
    other = Interface("again", LOOPBACK.index, LOOPBACK.ip)
    with LocalNetwork(LocalBoard("127.0.0.5", MACS[0])) as network:
        (board,) = network.find([LOOPBACK, other])
    assert board.ip == IPv4Address("127.0.0.5")


def test_two_boards_with_one_address_are_both_found() -> None:
    boards = [LocalBoard("127.0.0.5", mac) for mac in MACS[:2]]
    with LocalNetwork(*boards) as network:
        found = network.find()
    assert [(str(board.ip), board.mac) for board in found] == [("127.0.0.5", x) for x in MACS[:2]]


LIES: dict[str, Callable[[bytes], bytes]] = {
    "the query itself": lambda query: query,
    "no bytes": lambda _: b"",
    "a byte less": lambda query: (query[:8] + MACS[0] + query[14:])[:-1],
    "a byte more": lambda query: query[:8] + MACS[0] + query[14:] + b"\0",
    "another number": lambda query: query[:8] + MACS[0] + bytes([query[14] ^ 1]) + query[15:],
    "another address": lambda query: query[:8] + MACS[0] + query[14:19] + b"\1",
    "another word": lambda query: b"\0\0\0\0bind" + MACS[0] + query[14:],
    "random bytes": lambda _: Random(1).randbytes(20),
}


@pytest.mark.parametrize("lie", LIES)
def test_other_answers_are_no_boards(lie: str) -> None:
    class Liar(LocalBoard):
        def answer(self, query: bytes) -> bytes | None:
            return LIES[lie](query)

    liar = Liar("127.0.0.5", MACS[0])
    with LocalNetwork(liar, LocalBoard("127.0.0.6", MACS[1])) as network:
        network.boards = network.boards[1:]
        found = network.find()
    assert [str(board.ip) for board in found] == ["127.0.0.6"]


def test_an_answer_from_another_port_is_no_board() -> None:
    with (
        LocalNetwork(LocalBoard("127.0.0.5", MACS[0])) as network,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        query = discovery._Query([LOOPBACK], network.port, bytes(6), IPv4Address(0))
        with query:
            (asking,) = query._sockets
            asking.bind(("127.0.0.1", 0))
            packet = query._packet
            other.sendto(packet[:8] + MACS[1] + packet[14:], asking.getsockname())
            macs = {board.mac for _ in range(4) for board in query.answers(SHORT)}
        assert macs == {MACS[0]}


def test_an_address_is_set_and_the_answer_comes_from_it() -> None:
    boards = [LocalBoard(f"127.0.0.{number + 5}", mac) for number, mac in enumerate(MACS[:2])]
    with LocalNetwork(*boards) as network:
        start = monotonic()
        assert set_address(LOOPBACK, MACS[1], IPv4Address("127.0.0.9"), 20, port=network.port)
        assert monotonic() - start < 10, "the first answer ends it"
        assert [each.ip for each in boards] == ["127.0.0.5", "127.0.0.9"]
        absent = bytes.fromhex("020000000001")
        assert not set_address(LOOPBACK, absent, IPv4Address("127.0.0.8"), SHORT, port=network.port)
        assert [each.ip for each in boards] == ["127.0.0.5", "127.0.0.9"]


def test_an_answer_from_the_old_address_sets_nothing() -> None:
    class Stubborn(LocalBoard):
        def answer(self, query: bytes) -> bytes | None:
            return query

    with LocalNetwork(Stubborn("127.0.0.5", MACS[0])) as network:
        assert not set_address(
            LOOPBACK, MACS[0], IPv4Address("127.0.0.9"), SHORT, port=network.port
        )


def test_interfaces_reach_others_and_are_not_the_loopback() -> None:
    for each in broadcast_interfaces():
        assert not each.ip.is_loopback
        assert each.name != "lo"
        assert str(each) == f"{each.name} ({each.ip})"


def test_no_interface_is_an_error() -> None:
    with pytest.raises(LinkError, match="no query for boards can be sent: no interface is up; ex"):
        find_boards([], SHORT)
    gone = Interface("gone0", 99_999, IPv4Address("127.0.0.1"))
    with pytest.raises(LinkError, match=r"can be sent: gone0 \(127.0.0.1\): No such device; exp"):
        find_boards([gone], SHORT)
    with LocalNetwork(LocalBoard("127.0.0.5", MACS[0])) as network:
        assert len(network.find([gone, LOOPBACK])) == 1
