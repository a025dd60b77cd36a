"""Queries to all stations find a board and set its address, and nothing else does."""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from random import Random
from typing import Any

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import Dot1Q, Ether

from bitlane_rtl.abi import QUERY, QUERY_BYTES, is_settable
from support.ethernet.bridge import StackBench
from support.ethernet.datagrams import datagram_of
from support.ethernet.line import (
    BOARD,
    BOARD_IP,
    BOARD_MAC,
    HEAD,
    Burst,
    answer,
    arp,
    datagram,
    echo,
    ethernet,
    frame,
    ip,
    on_line,
    padded,
    recomputed,
)
from support.serial.frames import request

ALL_MACS, ALL_IPS = "ff:ff:ff:ff:ff:ff", "255.255.255.255"
NOBODY = bytes(6)
NEW_IP = "10.66.0.9"


@pytest.fixture(scope="module")
def bench() -> StackBench:
    return StackBench(check=True)


def content(mac: bytes = NOBODY, address: str = "0.0.0.0", number: bytes = b"\x12\x34") -> bytes:
    return b"\0\0\0\0find" + mac + number + IPv4Address(address).packed


def to_all(data: bytes, **changes: Any) -> Any:
    return ethernet(dst=ALL_MACS) / ip(dst=ALL_IPS) / udp(data, **changes)


def to_one(data: bytes, address: str = BOARD_IP) -> Any:
    return ethernet() / ip(dst=address) / udp(data)


def udp(data: bytes, **changes: Any) -> Any:
    return datagram(data, **changes)[UDP]


def answered(query: Any, address: str = BOARD_IP) -> bytes:
    """Return the frame, without padding, that answers ``query`` from ``address``."""
    data = bytes(query[UDP].payload)
    data = data[:8] + BOARD.mac + data[14:]
    back = ip(src=address, dst=query["IP"].src, id=0, flags="DF", ttl=64)
    ports = UDP(sport=BOARD.port, dport=query[UDP].sport)
    return bytes(Ether(src=BOARD_MAC, dst=query.src) / back / ports / data)


def from_address(request: Any, address: str) -> bytes:
    """Return the answer of the stack to ``request`` from the board at ``address``."""
    back = Ether(answer(request))
    if "ARP" in back:
        back["ARP"].psrc = address
        return bytes(back)
    back["IP"].src = address
    return bytes(recomputed(back))


READ = datagram_of(7, [request(1, 0, 0x1000, 4)])
"""A datagram of the link."""


def test_a_query_has_its_bytes() -> None:
    assert content()[:8] == QUERY
    assert len(content()) == QUERY_BYTES


def test_a_board_answers_queries_to_all_and_to_itself(bench: StackBench) -> None:
    queries = [make(content(number=n)) for make in (to_all, to_one) for n in (b"\0\0", b"\xff\1")]
    got = bench.answers(queries)
    assert got == [padded(answered(each)) for each in queries]
    for each in got:
        assert bytes(recomputed(Ether(each))) == each, "a length or a checksum is wrong"


def test_tags_of_vlan_0_are_ignored(bench: StackBench) -> None:
    query = to_all(content())
    tagged = ethernet(dst=ALL_MACS) / Dot1Q(vlan=0, prio=5) / query.payload
    got = bench.answers([tagged, query])
    assert got == [padded(answered(query))] * 2


def test_an_address_is_set_until_the_next_reset(bench: StackBench) -> None:
    sets = to_all(content(BOARD.mac, NEW_IP))
    requests: list[Callable[[str], Any]] = [
        lambda address: arp(pdst=address),
        lambda address: ethernet() / ip(dst=address) / echo(b"abcdefgh")["ICMP"],
        lambda address: to_one(READ, address),
        lambda address: to_one(content(), address),
    ]
    old = [each(BOARD_IP) for each in requests]
    new = [each(NEW_IP) for each in requests]
    expected = [*map(padded, (from_address(each, BOARD_IP) for each in old[:3]))]
    expected.append(padded(answered(old[3])))
    moved = [*map(padded, (from_address(each, NEW_IP) for each in new[:3]))]
    moved.append(padded(answered(new[3], NEW_IP)))
    find = to_all(content())
    for idle in (600, 12):
        # With the least gap, the answers to the first ones leave before the address is set.
        got = bench.answers([*new, *old, sets, *old, *new, find], idle)
        assert got == [
            *expected,
            padded(answered(sets, NEW_IP)),
            *moved,
            padded(answered(find, NEW_IP)),
        ]
    got = bench.answers([*new, *old])
    assert got == expected


SETTABLE = ["1.0.0.0", "1.2.3.4", "126.255.255.255", "128.0.0.1", "192.168.1.51", "223.255.255.254"]
NOT_SETTABLE = ["0.0.0.1", "0.255.255.255", "127.0.0.1", "224.0.0.1", "239.1.2.3", ALL_IPS]


def test_the_addresses_that_a_station_can_have(bench: StackBench) -> None:
    for address in SETTABLE:
        assert is_settable(IPv4Address(address).packed)
        sets, then = to_all(content(BOARD.mac, address)), to_one(content(), address)
        got = bench.answers([sets, then])
        assert got == [padded(answered(x, address)) for x in (sets, then)]
    for address in (*NOT_SETTABLE, "0.0.0.0"):
        assert not is_settable(IPv4Address(address).packed)
        (got,) = bench.answers([to_all(content(BOARD.mac, address)), to_one(content())])
        assert got == padded(answered(to_one(content())))


@pytest.mark.slow
def test_every_first_byte(bench: StackBench) -> None:
    """The last one that a station can have is the address."""
    frames = [to_all(content(BOARD.mac, f"{first}.3.2.1")) for first in range(256)]
    got = bench.answers(frames)
    right = [first for first in range(256) if is_settable(bytes([first, 3, 2, 1]))]
    assert [Ether(each)["IP"].src for each in got] == [f"{first}.3.2.1" for first in right]


def changed(data: bytes, place: int, bits: int = 1) -> bytes:
    return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]


SET = content(BOARD.mac, NEW_IP)
WRONG: dict[str, Callable[[], Sequence[Any]]] = {
    "another first word": lambda: [
        to_all(changed(data, place, bits))
        for data in (content(), SET)
        for place in range(8)
        for bits in (1, 0x80)
    ],
    "another MAC address": lambda: [
        *(to_all(changed(SET, place, bits)) for place in range(8, 14) for bits in (1, 0x40)),
        *(to_all(changed(content(), place)) for place in range(8, 14)),
    ],
    "an address for all boards": lambda: [
        to_all(content(address=each)) for each in (NEW_IP, "0.0.0.1", "1.0.0.0")
    ],
    "another size": lambda: [
        to_all(data[:size].ljust(size, b"\0"))
        for data in (content(), SET)
        for size in (1, 4, 8, 16, 19, 21, 24, 40, 1472)
    ],
    "another station": lambda: [
        ethernet(dst=mac) / ip(dst=address) / udp(data)
        for data in (content(), SET)
        for mac, address in (
            (ALL_MACS, BOARD_IP),
            (BOARD_MAC, ALL_IPS),
            (ALL_MACS, "192.168.1.255"),
            (ALL_MACS, "255.255.255.254"),
            ("ff:ff:ff:ff:ff:fe", ALL_IPS),
            ("01:00:5e:00:00:01", "224.0.0.1"),
            ("02:a1:b2:c3:d4:e4", BOARD_IP),
            (BOARD_MAC, "192.168.1.51"),
        )
    ],
    "another port": lambda: [to_all(data, dport=0xB17F) for data in (content(), SET)],
    "the board's port as the source": lambda: [
        to_all(data, sport=BOARD.port) for data in (content(), SET)
    ],
    "a wrong checksum": lambda: [to_all(data, chksum=1) for data in (content(), SET)],
    "a damaged frame": lambda: [
        Burst(HEAD + changed(frame(bytes(to_all(data))), place), 600)
        for data in (content(), SET)
        for place in (50, 58, 61, 63)
    ],
    "an error of the PHY": lambda: [
        on_line(bytes(to_all(data)), 600, [60]) for data in (content(), SET)
    ],
    "another kind for all": lambda: [
        ethernet(dst=ALL_MACS) / ip(dst=ALL_IPS) / rest
        for rest in (udp(READ), echo(b"abcdefgh")["ICMP"], echo(content())["ICMP"])
    ],
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_malformed_is_not_answered_and_sets_nothing(bench: StackBench, kind: str) -> None:
    frames = [each for wrong in WRONG[kind]() for each in (wrong, to_one(content()))]
    got = bench.answers(frames)
    assert got == [padded(answered(frames[1]))] * (len(frames) // 2)


def test_data_that_look_like_a_query_are_sent_back_unchanged(bench: StackBench) -> None:
    """The board writes its MAC address into queries alone."""
    pings = [echo(data) for data in (content(), SET, b"\0" * 40, content() + b"\0" * 30)]
    links = [
        to_one(datagram_of(session, [request(1, 1, 0, size, data)]))
        for session, data in ((7, content()), (1 << 24, content()))
        for size in [len(data)]
    ]
    got = bench.answers([*pings, *links])
    assert got == [padded(answer(each)) for each in (*pings, *links)]


@pytest.mark.slow
def test_a_stack_without_the_link_has_no_queries() -> None:
    bench = StackBench()
    queries = [datagram(data) for data in (content(), SET)]
    assert bench.answers(queries) == [padded(answer(each)) for each in queries]
    assert bench.answers([to_all(content()), to_all(SET)]) == []


@pytest.mark.slow
def test_random_queries(bench: StackBench) -> None:
    """Some are right, some have a wrong byte. The board has the address that was set last."""
    random = Random(4)
    address = BOARD_IP
    frames: list[Any] = []
    expected: list[bytes] = []
    for _ in range(150):
        right = random.random() < 0.7
        if random.random() < 0.4:
            new = f"10.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(256)}"
            data = content(BOARD.mac, new)
        else:
            new, data = address, content()
        if not right:
            data = changed(data, random.choice([*range(14), 16]), 1 << random.randrange(8))
            if data[8:14] == BOARD.mac and data[:8] == QUERY and is_settable(data[16:]):
                continue
        frames.append(to_all(data) if random.random() < 0.5 else to_one(data, address))
        if right:
            address = new
            expected.append(padded(answered(frames[-1], address)))
        else:
            frames.append(to_one(content(), address))
            expected.append(padded(answered(frames[-1], address)))
    assert bench.answers(frames) == expected
