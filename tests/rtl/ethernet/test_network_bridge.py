"""The board executes the requests of its session's datagrams, and answers as the contract says."""

import functools
import random
from collections.abc import Sequence
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from bitlane_rtl.abi import (
    BUSY,
    CONTROL_BASE,
    DATAGRAM_RECEIVE_BYTES,
    REPETITIONS,
    SEQUENCES,
    STORED_HEADER_BYTES,
    TAKE_OVER,
    Answer,
)
from support.ethernet.bridge import (
    EVERY_SECOND,
    OTHER,
    PERIODS,
    SESSION,
    SLOW,
    BridgeBench,
    device,
    expect,
    line_of,
    sent_in,
    start,
)
from support.ethernet.datagrams import NetworkRules, answers_in, datagram_of, goodbye
from support.ethernet.line import (
    BOARD,
    answer,
    arp,
    checked,
    datagram,
    echo,
    ethernet,
    ip,
    on_line,
    padded,
)
from support.seeds import seeds, slow, stride
from support.serial.frames import Reply, random_request, read, with_crc, write

_PAIR = b"old!", b"new!"


@pytest.fixture(scope="module")
def bench() -> BridgeBench:
    return BridgeBench()


def test_several_frames_make_one_datagram(bench: BridgeBench) -> None:
    rng = random.Random(3)
    contents = [
        content
        for number in range(0, 24, 2)
        for data in [rng.randbytes(rng.randrange(40))]
        for content in (write(number, 64 * number, data), read(number + 1, 64 * number, len(data)))
    ]
    answers = expect(bench, [start(), datagram_of(SESSION, contents)], after=12_000)
    assert [len(each) for _, each in answers] == [1, 24]


def test_answers_that_do_not_fit_make_several_datagrams(bench: BridgeBench) -> None:
    """1,464 bytes of answers fit: 366 words."""
    sizes = [512, 512, 422, 3, 512, 512, 410, 1, 512, 512, 418, 512, 512, 0, 1]
    reads = [read(number, number, size) for number, size in enumerate(sizes)]
    answers = expect(bench, [start(), datagram_of(SESSION, reads)], after=10_000)
    assert [len(each) for _, each in answers] == [1, 3, 4, 3, 4, 1]


def test_out_of_turn(bench: BridgeBench) -> None:
    """One complaint is made, and nothing behind the request in its datagram is executed."""
    late = datagram_of(SESSION, [write(5, 0, b"late"), write(0, 0, b"now!")])
    half = datagram_of(SESSION, [write(0, 8, b"this"), write(2, 8, b"not!"), write(1, 8, b"nor!")])
    then = datagram_of(SESSION, [read(1, 8, 4)])
    starts = [start(OTHER, number=127), start(nonce=1 << TAKE_OVER)]
    answers = expect(bench, [*starts, late, late, half, late, then, late])
    kinds = [[each.kind for each in found] for _, found in answers]
    expected = Answer.EXPECTED
    assert kinds == [[0], [0], [expected], [0, expected], [0], [expected]]


def test_sessions(bench: BridgeBench) -> None:
    mine = datagram_of(SESSION, [write(0, 0, b"mine")])
    other = datagram_of(OTHER, [write(0, 0, b"their")])
    taken = start(OTHER, nonce=1 << TAKE_OVER)
    answers = expect(bench, [mine, other, datagram_of(0, [write(0, 0, b"none")])])
    assert answers == []
    answers = expect(bench, [start(), other, start(OTHER, 9, 0xFFFFFFFE), other, mine])
    assert [each for _, found in answers for each in found][1:] == [
        Reply(9, BUSY),
        Reply(0, Answer.DONE),
    ]
    answers = expect(bench, [start(), mine, taken, mine, other, start(), start(OTHER)])
    assert [session for session, _ in answers] == [SESSION, SESSION, OTHER, OTHER, SESSION, OTHER]


@pytest.mark.parametrize("closed", [False, True])
def test_a_late_hello_of_the_session_before_starts_nothing(
    bench: BridgeBench, closed: bool
) -> None:
    """It starts nothing if it takes over, too; its host learns that another one used the board."""
    mine, late = (start(nonce=nonce) for nonce in (1 << TAKE_OVER, 0))
    other = [start(OTHER, nonce=1 << TAKE_OVER), datagram_of(OTHER, [write(0, 0, b"kept")])]
    other += [datagram_of(OTHER, [goodbye(1)])] * closed
    then = [datagram_of(SESSION, [write(0, 0, b"lost")]), datagram_of(OTHER, [read(1, 0, 4)])]
    answers = expect(bench, [mine, *other, mine, late, *then])
    assert [each for _, found in answers for each in found][-3:] == [
        Reply(SEQUENCES - 1, BUSY),
        Reply(SEQUENCES - 1, BUSY),
        Reply(1, Answer.DONE, b"kept"),
    ]


def test_a_late_copy_of_hello_changes_nothing(bench: BridgeBench) -> None:
    first, second = (datagram_of(SESSION, [write(n, 0, data)]) for n, data in enumerate(_PAIR))
    then = datagram_of(SESSION, [read(2, 0, 4)])
    answers = expect(bench, [start(), first, second, start(), first, then])
    assert answers[3] == answers[0]
    assert answers[5][1] == [Reply(2, 0, _PAIR[1])]


@pytest.mark.parametrize("before", [0, 1, 3, *map(slow, (127, 8191, 8192, 8193))])
def test_a_session_that_a_late_hello_revives_takes_no_write_for_a_repetition(
    bench: BridgeBench, before: int
) -> None:
    """Its host has sent ``before`` requests; two others have used the board and closed it."""
    writes = [
        write(number, 8 * (number % 8000), bytes([number % 256] * 8))
        for number in range(before + 2)
    ]
    mine = [datagram_of(SESSION, writes[n : min(n + 64, before)]) for n in range(0, before, 64)]
    other = [start(session, nonce=1 << TAKE_OVER) for session in (OTHER, OTHER + 1)]
    other += [datagram_of(OTHER + 1, [write(0, 0, b"theirs!!")])]
    other += [datagram_of(OTHER + 1, [goodbye(1)]), start()]
    then = [datagram_of(SESSION, [each]) for each in writes[before:]]
    answers = expect(bench, [start(), *mine, *other, *then], 12_000)
    kinds = [each.kind for each in answers[-1][1]]
    assert kinds == [Answer.EXPECTED if before else Answer.DONE]


@pytest.mark.parametrize("count", [2, 300, *map(slow, (8191, 8192, 8193, 9000))])
def test_of_a_session_the_last_8192_requests_have_repetitions(
    bench: BridgeBench, count: int
) -> None:
    reads = [read(number, number, 1) for number in range(count)]
    mine = [datagram_of(SESSION, reads[n : n + 100]) for n in range(0, count, 100)]
    first = max(count - REPETITIONS, 0)
    oldest, older = (datagram_of(SESSION, [read(n, n % SEQUENCES, 1)]) for n in (first, first - 1))
    answers = expect(bench, [start(), *mine, oldest, older], 6000)
    kinds = [each.kind for _, found in answers[-2:] for each in found]
    assert kinds == [Answer.DONE, Answer.EXPECTED]


def test_goodbye(bench: BridgeBench) -> None:
    end = datagram_of(SESSION, [goodbye(77)])
    mine = [datagram_of(SESSION, [write(number, 0, b"mine")]) for number in range(3)]
    payloads = [end, start(), mine[0], end, end, mine[1], start(OTHER), end, start(OTHER), mine[2]]
    answers = expect(bench, payloads)
    kinds = [each.kind for _, found in answers for each in found]
    assert kinds == [0, 0, 0, 0, 0, BUSY, 0, 0]


def test_answers_go_to_where_the_requests_came_from(bench: BridgeBench) -> None:
    def from_host(number: int, payload: bytes) -> Any:
        host = ethernet(src=f"02:00:00:00:00:{number:02x}") / ip(src=f"192.168.1.{number}")
        return host / UDP(sport=5000 + number, dport=BOARD.port) / payload

    mine = [start(), datagram_of(SESSION, [read(0, 0, 4)]), datagram_of(SESSION, [read(1, 4, 4)])]
    asked = [(1, mine[0]), (2, start(OTHER)), (3, mine[1]), (1, mine[2])]
    frames = [from_host(number, payload) for number, payload in asked]
    bursts = bench.run([on_line(bytes(each), 99) for each in frames], device())
    sent = [Ether(checked(burst)) for burst in bursts]
    assert [(each.dst, each[IP].dst, each[UDP].dport) for each in sent] == [
        (f"02:00:00:00:00:{number:02x}", f"192.168.1.{number}", 5000 + number)
        for number, _ in asked
    ]


def test_pings_and_requests_take_turns(bench: BridgeBench) -> None:
    """The board answers ARP and echoes in the order of the line, and all datagrams, too."""
    rng = random.Random(4)
    mine = [datagram_of(SESSION, [read(n, 0, 400), read(n + 1, 0, 300)]) for n in range(0, 20, 2)]
    frames = [datagram(start())]
    for payload in mine:
        frames += [arp(), datagram(payload), echo(rng.randbytes(rng.randrange(4, 100)))]
    bursts = bench.run([on_line(bytes(each), 12) for each in frames], device(), after=12_000)
    sent = [checked(burst) for burst in bursts]
    others = [padded(answer(each)) for each in frames if UDP not in each]
    assert [each for each in sent if UDP not in Ether(each)] == others
    assert len(sent) == len(frames)


def damaged(rng: random.Random, payload: bytes) -> bytes:
    """Return another datagram than ``payload``, whose CRC or length is wrong."""
    changed = bytearray(payload)
    kind = rng.randrange(5)
    if kind == 0:
        changed[rng.randrange(len(changed))] ^= rng.randrange(1, 256)
    elif kind == 1:
        del changed[rng.randrange(1, len(changed)) :]
    elif kind == 2:
        changed += rng.randbytes(rng.randrange(1, 9))
    elif kind == 3:
        changed = bytearray(rng.randbytes(rng.randrange(1, 200)))
    else:
        del changed[rng.randrange(len(changed))]
    return bytes(changed) if changed != payload else damaged(rng, payload)


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_damaged_datagrams_do_nothing_and_block_nothing(bench: BridgeBench, seed: int) -> None:
    """Their FCS and checksum of UDP are right. Good ones are in between."""
    rng = random.Random(seed)
    payloads, idles = [start()], [12]
    between = 100 // stride(4)
    for number in range(15):
        good = datagram_of(SESSION, [random_request(rng, number, 100), read(number + 1, 0, 9)][:1])
        payloads += [damaged(rng, good) for _ in range(between)] + [good]
        idles += [2000] + [12] * between
    rules = NetworkRules(device())
    assert sum(bool(rules.replies(payload)) for payload in payloads) == 16
    expect(bench, payloads, idles)


@pytest.mark.parametrize("seed", seeds(1, 8))
def test_mutated_datagrams_with_a_right_crc(bench: BridgeBench, seed: int) -> None:
    """A host that breaks the rules; what is executed is what the rules allow."""
    rng = random.Random(seed)
    payloads = []
    for number in range(40):
        contents = [random_request(rng, number + each, 40) for each in range(rng.randrange(1, 4))]
        content = bytearray(datagram_of(SESSION, contents)[:-4])
        if number % 8 == 0:
            content = bytearray(start(rng.choice([SESSION, OTHER]), number, number)[:-4])
        elif rng.random() < 0.7:
            content[rng.randrange(len(content))] = rng.choice([0, 1, 2, 3, 4, 255])
        payloads.append(with_crc(bytes(content)))
    expect(bench, payloads)


def test_datagrams_of_any_size_that_is_wrong(bench: BridgeBench) -> None:
    good = datagram_of(SESSION, [write(0, 0, bytes(512)), write(1, 600, bytes(512))])
    sizes = [*range(1, 40), 1064, 1065, 1066, 1067, 1471, 1472]
    wrong = [with_crc(good.ljust(1472, b"\0")[: size - 4]) for size in sizes if size > 4]
    wrong += [good[:size].ljust(size, b"\0") for size in sizes]
    expect(bench, [start(), *wrong, good], [12, 3000, *[12] * len(wrong)])


def test_a_session_ends_by_itself(bench: BridgeBench) -> None:
    """After 5 to 10 seconds of silence, here of 1,600 clocks each; its datagrams begin it anew."""
    second = 4000  # in clocks of the line
    mine = [datagram_of(SESSION, [read(number, 0, 4)]) for number in range(4)]
    payloads = [start(), start(OTHER), mine[0], start(OTHER), mine[1], start(OTHER), mine[2]]
    seconds = [0.1, 4.7, 4.7, 4.7, 0.2, 10.1, 0.2]
    line = line_of(payloads, [round(each * second) for each in seconds])
    sent = [answers_in(each) for each in sent_in(bench.run(line, device()))]
    assert [(session, [each.kind for each in answers]) for session, answers in sent] == [
        (SESSION, [Answer.DONE]),
        (OTHER, [BUSY]),
        (SESSION, [Answer.DONE]),
        (OTHER, [BUSY]),
        (SESSION, [Answer.DONE]),
        (OTHER, [Answer.DONE]),
    ]
    late = line_of([start(), mine[0], start(OTHER)], [100, 12 * second, 200])
    sent = [answers_in(each) for each in sent_in(bench.run(late, device()))]
    assert [(session, each.kind) for session, [each] in sent] == [
        (SESSION, Answer.DONE),
        (SESSION, Answer.DONE),
        (OTHER, BUSY),
    ]


@pytest.mark.parametrize("size", [0, slow(100), 480])
def test_a_full_buffer_of_datagrams_is_held(bench: BridgeBench, size: int) -> None:
    """DATAGRAM_RECEIVE_BYTES at the rate of the line, while the memory is slow."""
    rng = random.Random(size)
    contents = [write(n, size * n, rng.randbytes(size)) for n in range(1000)]
    per_datagram = 1464 // len(contents[0])
    payloads: list[bytes] = []
    room = DATAGRAM_RECEIVE_BYTES
    while len(payloads) * per_datagram < 120:
        first = len(payloads) * per_datagram
        payload = datagram_of(SESSION, contents[first : first + per_datagram])
        room -= len(payload) + STORED_HEADER_BYTES
        if room < 0:
            break
        payloads.append(payload)
    idles = [12, 1000] + [12] * (len(payloads) - 1)
    expect(bench, [start(), *payloads], idles, after=60_000, stalls=SLOW, latency=20)


SYNC = 31e-9
"""Period of the slowest clock."""


@functools.cache
def slowest(data_width: int) -> BridgeBench:
    return BridgeBench(data_width, sync=SYNC)


@pytest.mark.parametrize(
    ("data_width", "writes", "cycles"),
    [(64, True, 438), (64, False, 438), slow(32, True, 794), slow(32, False, 798)],
)
def test_cycles_of_full_datagrams(data_width: int, writes: bool, cycles: int) -> None:
    """1,472 bytes in three requests, and a memory like an SDRAM with 32 data lines.

    The line carries a full datagram in 12.3 us, 397 cycles of the slowest clock, at which it
    bounds no rate.
    """
    bench = slowest(data_width)
    rng = random.Random(data_width)
    # While the board reads for the first datagram, the line fills its buffer.
    first = datagram_of(SESSION, [read(number, 0, 484) for number in range(30)])
    contents = [
        write(number, 512 * number, rng.randbytes(480)) if writes else read(number, 0, 484)
        for number in range(30, 57)
    ]
    payloads = [datagram_of(SESSION, contents[number : number + 3]) for number in range(0, 27, 3)]
    line = line_of([start(), first, *payloads], 12)
    bursts = bench.run(line, device(), 40_000 * 64 // data_width, stalls=EVERY_SECOND, latency=11)
    assert len(bursts) == 1 + 10 + 9
    seconds = sum(burst.idle + len(burst.data) for burst in bursts[-5:]) * PERIODS["tx"]
    assert round(seconds / 5 / SYNC) == cycles


def cycles_to_answer(bench: BridgeBench, contents: Sequence[bytes], **options: Any) -> float:
    """Return the cycles of ``sync`` from the end of a datagram to the preamble of its answer."""
    line = line_of([start(), datagram_of(SESSION, contents)])
    bursts = bench.run(line, device(), **options)
    end = sum(burst.idle + len(burst.data) for burst in line) * PERIODS["rx"]
    begin = sum(burst.idle + len(burst.data) for burst in bursts) - len(bursts[-1].data)
    return (begin * PERIODS["tx"] - end) / PERIODS["sync"]


@pytest.mark.parametrize(
    ("size", "writes", "cycles"),
    [(0, False, 6), (4, False, 10), (64, False, 25), (4, True, 10), (64, True, 25)],
)
def test_cycles_in_the_middle_of_a_datagram(
    bench: BridgeBench, size: int, writes: bool, cycles: int
) -> None:
    """Of a request, with a memory that answers in the next cycle."""
    few, many = (
        cycles_to_answer(
            bench,
            [write(n, 0, bytes(size)) if writes else read(n, 0, size) for n in range(count)],
        )
        for count in (4, 20)
    )
    assert round((many - few) / 16) == cycles


@pytest.mark.parametrize(
    ("content", "cycles"),
    [
        (read(0, 0, 0), 64),
        (read(0, 0, 64), 87),
        (write(0, 0, bytes(64)), 95),
        (read(0, CONTROL_BASE, 4), 66),
        (write(0, CONTROL_BASE, bytes(4)), 66),
    ],
    ids=["read 0", "read 64", "write 64", "read a word", "write a word"],
)
def test_cycles_of_a_small_request(bench: BridgeBench, content: bytes, cycles: int) -> None:
    """From the request's last byte on the line to the preamble of its answer."""
    found = cycles_to_answer(bench, [content], stalls=EVERY_SECOND, latency=11)
    assert abs(found - cycles) < 2


def test_the_page_of_cycles(bench: BridgeBench) -> None:
    """The one in `network_bridge`, and a READ and its end in the middle of a datagram."""
    heard: dict[str, list[int]] = {}
    reads = datagram_of(SESSION, [read(0, 0, 4), read(1, 0, 4), read(2, 0, 0)])
    bench.run(line_of([start(), reads]), device(), transfers=heard)
    # A HELLO has ten words.
    first = heard["received"][10]
    cycles = {
        name: [cycle - first for cycle in found if cycle >= first] for name, found in heard.items()
    }
    assert cycles == {
        "received": [*range(8), 10, 11, 26, 27, 36, 37],
        "requests": [*range(7), 9, 10, 25, 26, 35, 36, 42],
        "answers": [*range(7), 14, 24, 30, 34, 40, 42],
        "bursts": [14, 30],
        "beats": [15, 31],
        "words": [24, 34],
        "sent": [16, 17, *range(19, 26), 32, 35, 42, 44],
    }
