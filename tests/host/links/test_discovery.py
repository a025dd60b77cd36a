"""Boards are found by a query to all stations, on the loopback interface."""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address
from random import Random
from time import monotonic

import pytest

from bitlane.errors import LinkError
from bitlane.links import discovery
from bitlane.links.discovery import (
    FoundBoard,
    Interface,
    broadcast_interfaces,
    find_boards,
    set_address,
)
from support.host.network import LOOPBACK, SHORT, LocalBoard, LocalNetwork, query_of

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


@pytest.mark.parametrize(("ip", "mac"), [("127.0.0.5", MACS[0]), ("127.0.0.9", MACS[1])])
def test_an_answer_from_the_old_address_or_of_another_board_sets_nothing(
    ip: str, mac: bytes
) -> None:
    class Stubborn(LocalBoard):
        def answer(self, query: bytes) -> bytes | None:
            return query[:8] + mac + query[14:]

    with LocalNetwork(Stubborn(ip, mac)) as network:
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
