"""The stack answers what it should and nothing else, as scapy reads it, at the rate of the line."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from scapy.layers.inet import ICMP, UDP
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from support.ethernet.bridge import StackBench
from support.ethernet.line import (
    BOARD,
    BOARD_MAC,
    HEAD,
    HOST_MAC,
    Burst,
    answer,
    arp,
    checked,
    datagram,
    echo,
    ethernet,
    frame,
    ip,
    on_line,
    padded,
    recomputed,
    with_fcs,
)
from support.seeds import seeds


@pytest.fixture(scope="module")
def bench() -> StackBench:
    return StackBench()


def expect(
    bench: StackBench, frames: Iterable[Any], answered: Iterable[Any] | None = None, idle: int = 400
) -> None:
    """Expect an answer to each frame, or to each of ``answered``, in order, and nothing else."""
    requests = [*frames]
    wanted = requests if answered is None else answered
    assert bench.answers(requests, idle) == [padded(answer(each)) for each in wanted]


def test_each_kind_is_answered(bench: StackBench) -> None:
    requests = [arp(), arp(to=BOARD_MAC), echo(b"abcdefgh"), datagram(b"0123"), datagram(b"x")]
    expect(bench, requests)
    for sent in bench.answers(requests):
        read = Ether(sent)
        assert bytes(recomputed(read)) == bytes(read), "a length or a checksum is wrong"


SIZES = (1, 2, 3, 4, 5, 15, 16, 17, 18, 19, 400, 1001, 1468, 1469, 1471, 1472)


@pytest.mark.parametrize("make", [echo, datagram])
def test_data_of_any_size(bench: StackBench, make: Callable[[bytes], Any]) -> None:
    rng = random.Random(1)
    requests = [make(rng.randbytes(size)) for size in SIZES]
    expect(bench, requests, idle=2000)
    expect(bench, [make(b"")], None if make is echo else [])


@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\0\xff", b"\xff\0\0\0"])
@pytest.mark.parametrize("make", [echo, datagram])
def test_sums_with_carries(bench: StackBench, make: Callable[[bytes], Any], fill: bytes) -> None:
    requests = [make((fill * size)[:size]) for size in (4, 8, 60, 1472)]
    expect(bench, requests, idle=2000)


def test_a_checksum_that_would_be_0_is_sent_as_0xffff(bench: StackBench) -> None:
    plain = datagram(bytes(4))
    sum_of_rest = Ether(answer(plain))[UDP].chksum
    request = datagram(bytes(2) + sum_of_rest.to_bytes(2, "big"))
    [sent] = bench.answers([request])
    assert sent == padded(answer(request))
    assert Ether(sent)[UDP].chksum == 0xFFFF


def test_datagrams_follow_each_other_at_the_rate_of_the_line(bench: StackBench) -> None:
    """The line sent back has 100 ppm less than the other, and datagrams as long."""
    rng = random.Random(2)
    requests = [datagram(rng.randbytes(1472)) for _ in range(12)]
    sent = bench.run([on_line(bytes(each)) for each in requests])
    assert [checked(burst) for burst in sent] == [answer(request) for request in requests]
    assert max(burst.idle for burst in sent[1:]) <= 14


def test_frames_that_find_no_room_are_dropped_whole(bench: StackBench) -> None:
    """Short requests come faster than replies leave, because a reply of ARP is padded, too."""
    rng = random.Random(3)
    requests = [echo(rng.randbytes(rng.choice([400, 1472]))) for _ in range(40)]
    requests = [each for one in requests for each in (one, datagram(b"four"))]
    replies = [padded(answer(each)) for each in requests]
    line = [on_line(bytes(each), idle=1) for each in requests]
    sent = [checked(burst) for burst in bench.run(line, after=20_000)]
    place = 0
    for each in sent:
        place = replies.index(each, place) + 1
    assert len(sent) > len(requests) // 2


@pytest.mark.parametrize("preamble", [0, 1])
def test_the_first_byte_of_the_address_is_checked_after_the_least_gap(
    bench: StackBench, preamble: int
) -> None:
    to_others = ethernet(dst="03:a1:b2:c3:d4:e5") / datagram(b"abcd").payload
    start = b"\x55" * preamble + b"\xd5"
    bursts = [on_line(bytes(GOOD)), Burst(start + frame(bytes(to_others)), idle=1)]
    expect(bench, [*bursts, GOOD], [GOOD, GOOD])


GOOD = datagram(b"good datagram!!!")
MAKES: dict[str, Callable[[], Sequence[Any]]] = {
    "another MAC address": lambda: [
        ethernet(dst=to) / rest
        for to in ("02:a1:b2:c3:d4:e4", "03:a1:b2:c3:d4:e5", "ff:ff:ff:ff:ff:ff")
        for rest in (GOOD.payload, echo(b"abcd").payload)
    ],
    "another IP address": lambda: [
        ethernet() / ip(dst=to) / rest
        for to in ("192.168.1.51", "192.168.0.50", "255.255.255.255", "192.168.1.255")
        for rest in (GOOD[UDP], ICMP() / b"abcd")
    ],
    "another port": lambda: [datagram(b"abcd", dport=port) for port in (0xB17F, 0x7EB1, 0, 53)],
    "a group as the source": lambda: [
        ethernet(src=source) / rest
        for source in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "03:11:22:33:44:55")
        for rest in (GOOD.payload, echo(b"abcd").payload, arp().payload)
    ],
    "the board's port as the source": lambda: [
        datagram(b"abcd", sport=BOARD.port, chksum=chksum) for chksum in (None, 0)
    ],
    "a packet that is too long": lambda: [make(bytes(1473)) for make in (echo, datagram)],
    "a tag of another VLAN": lambda: [
        ethernet() / tag / rest
        for tag in (
            *(Dot1Q(vlan=vlan) for vlan in (1, 2, 8, 16, 128, 256, 2048, 4095)),
            Dot1Q() / Dot1Q(),
            Dot1AD() / Dot1Q(),
            Dot1AD(),
        )
        for rest in (GOOD.payload, echo(b"abcd").payload, arp().payload)
    ],
    "a tag of another type": lambda: [
        ethernet(type=kind) / bytes(2) / b"\x08\0" / bytes(GOOD.payload)
        for kind in (0x8101, 0x8106, 0x8110, 0x8180, 0x0100, 0x8000, 0xC100, 0x9100)
    ],
    "another type": lambda: [ethernet(type=t) / bytes(ip()) for t in (0x86DD, 0x0802, 0x0900, 46)],
    "another protocol": lambda: [ethernet() / ip(proto=p) / bytes(28) for p in (0, 2, 6, 18, 255)],
    "another message of ICMP": lambda: [
        echo(b"abcd", type=kind, code=code) for kind, code in ((0, 0), (3, 0), (8, 1), (9, 0))
    ],
    "options": lambda: [ethernet() / ip(options=[b"\x01" * 4]) / GOOD[UDP]],
    "a fragment": lambda: [
        ethernet() / ip(**fields) / GOOD[UDP]
        for fields in ({"flags": "MF"}, {"frag": 1}, {"frag": 256}, {"flags": 4})
    ],
    "version": lambda: [ethernet() / ip(version=version) / GOOD[UDP] for version in (0, 5, 6)],
    "a wrong checksum": lambda: [
        *(ethernet() / ip(chksum=1) / rest for rest in (GOOD[UDP], ICMP() / b"abcd")),
        *(datagram(b"abcd", chksum=wrong) for wrong in (1, 0xFFFF)),
        *(echo(b"abcd", chksum=wrong) for wrong in (0, 1, 0xFFFF)),
    ],
    "lengths that disagree": lambda: [
        *(datagram(b"abcd", len=size, chksum=0) for size in (0, 7, 8, 11, 13, 0x10C, 0xFFFF)),
        *(ethernet() / ip(len=size) / UDP(dport=0xB17E, chksum=0) / b"abcd" for size in (31, 33)),
    ],
    "a length that is too short": lambda: [
        ethernet() / ip(len=size) / UDP(dport=0xB17E, len=(size - 20) & 0xFFFF, chksum=0) / b"abcd"
        for size in (0, 1, 10, 14, 17, 19, 20, 23, 27, 28)
    ],
    "an echo without a whole header": lambda: [
        ethernet() / ip(proto=1) / short
        for size in (1, 2, 3)
        for short in [bytes(ICMP() / (b"\0" * 4))[:4] + b"\0" * size]
    ],
    "a length beyond the frame": lambda: [
        ethernet() / ip(len=size) / UDP(dport=0xB17E, len=size - 20, chksum=0) / bytes(80)
        for size in (109, 110, 111, 112, 113, 500, 1501, 2047, 2048 + 60, 65535)
    ],
    "a request of ARP that is not one": lambda: [
        arp(pdst="192.168.1.51"),
        arp(op=2),
        arp(op=0x0101),
        arp(hwtype=6),
        arp(ptype=0x86DD),
        arp(hwlen=8),
        arp(plen=16),
        arp(to="02:00:00:00:00:01"),
    ],
}


@pytest.mark.parametrize("kind", MAKES)
def test_what_is_not_for_the_board_is_not_answered(bench: StackBench, kind: str) -> None:
    frames = MAKES[kind]()
    expect(bench, [each for wrong in frames for each in (wrong, GOOD)], [GOOD] * len(frames))


def test_a_datagram_needs_no_checksum(bench: StackBench) -> None:
    request = datagram(b"without it", chksum=0)
    expect(bench, [request])


def test_ports_like_the_boards_are_answered(bench: StackBench) -> None:
    requests = [datagram(b"abcd", sport=port) for port in (0xB17F, 0xB07E, 0x7EB1, 0x7E7E, 1)]
    expect(bench, requests)


@pytest.mark.parametrize("make", [echo, datagram])
def test_tags_of_vlan_0_are_ignored(bench: StackBench, make: Callable[[bytes], Any]) -> None:
    """They have a priority and an eligibility to drop; the answer has no tag."""
    tags = [Dot1Q(vlan=0, prio=prio, dei=dei) for prio in range(8) for dei in range(2)]
    data = random.Random(5).randbytes
    requests = [ethernet() / tag / make(data(3)).payload for tag in tags]
    requests += [ethernet(dst="ff:ff:ff:ff:ff:ff") / tag / arp().payload for tag in tags]
    expect(bench, requests)
    longest = [ethernet() / tag / make(data(1472)).payload for tag in tags[::13]]
    expect(bench, longest, idle=2000)


def test_a_frame_that_ends_in_its_tag_leaves_nothing_behind(bench: StackBench) -> None:
    tagged = bytes(ethernet() / Dot1Q(vlan=0, prio=7) / GOOD.payload)
    bursts: list[Burst] = []
    for size in range(12, 20):
        bursts += [Burst(HEAD + tagged[:size], 400), on_line(bytes(GOOD), idle=1)]
    expect(bench, bursts, [GOOD] * 8)


def test_padding_is_ignored(bench: StackBench) -> None:
    """Of a frame that is longer than its packet, only the packet counts."""
    requests = [datagram(b"abcde"), echo(b"ab"), arp()]
    bursts = [Burst(HEAD + with_fcs(bytes(each) + b"\xa5" * 90), 400) for each in requests]
    expect(bench, bursts, requests)


def test_every_wrong_bit_of_a_header_is_noticed(bench: StackBench) -> None:
    """The FCS is right. No bit changes who is answered, except where a checksum allows it."""
    request = datagram(b"abcd")
    whole = bytes(request)
    for first in range(0, 42, 6):
        bursts = []
        for bit in range(8 * first, 8 * first + 48):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            bursts.append(on_line(bytes(damaged), 120))
        sent = bench.run(bursts)
        if first == 6:
            assert len(sent) == 47, "of the sender's MAC address, one bit must be 0"
        else:
            assert not sent, first


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_random_frames_are_never_answered_and_block_nothing(bench: StackBench, seed: int) -> None:
    """Mutated frames with a right FCS, and random bytes; datagrams among them are answered."""
    rng = random.Random(seed)
    bursts: list[Burst] = []
    expected = 0
    for number in range(120):
        whole = bytearray(bytes(rng.choice([GOOD, echo(b"abc"), arp(), datagram(bytes(700))])))
        kind = rng.randrange(4)
        if kind == 0:
            whole[rng.randrange(14, 40)] ^= rng.randrange(1, 256)
        elif kind == 1:
            del whole[rng.randrange(12, len(whole)) :]
        elif kind == 2:
            whole[14:] = rng.randbytes(rng.randrange(1500))
        data = HEAD + frame(bytes(whole)) if kind < 3 else rng.randbytes(rng.randrange(1, 300))
        bursts.append(Burst(data, rng.randrange(12, 30)))
        if number % 10 == 9:
            bursts.append(on_line(bytes(datagram(number.to_bytes(4, "big"))), idle=900))
            expected += 1
    sent = [Ether(checked(burst)) for burst in bench.run(bursts)]
    ends = [bytes(each[UDP].payload)[:4] for each in sent if UDP in each]
    found = [int.from_bytes(each, "big") for each in ends if each[:3] == bytes(3)]
    assert [number for number in found if number % 10 == 9] == list(range(9, 120, 10))
    assert all(each.dst == HOST_MAC for each in sent)
