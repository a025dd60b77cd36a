"""The board executes the requests of its session's datagrams, and answers as the contract says."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether

from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.datagrams import BUSY, TAKE_OVER
from bitlane_rtl.abi.frames import Answer
from support.board.model import MemoryDevice
from support.ethernet.bridge import CONFIGURATION, BridgeBench
from support.ethernet.datagrams import (
    Answered,
    NetworkRules,
    answers_in,
    datagram_of,
    goodbye,
)
from support.ethernet.line import Burst, checked, on_line
from support.ethernet.packets import HOST_MAC, HOST_PORT, datagram
from support.seeds import seeds
from support.serial.frames import hello, random_request, read, request, write

SESSION, OTHER = 0x12345678, 0x9ABCDEF0


def device() -> MemoryDevice:
    """Return a device with random bytes."""
    made = MemoryDevice(CONFIGURATION.memory_base, CONFIGURATION.memory_bytes)
    rng = random.Random(1)
    made.memory[:] = rng.randbytes(len(made.memory))
    made.window[:] = rng.randbytes(len(made.window))
    return made


@pytest.fixture(scope="module")
def bench() -> BridgeBench:
    return BridgeBench()


def line_of(payloads: Sequence[bytes], idle: int = 3000) -> list[Burst]:
    return [on_line(bytes(datagram(payload)), idle) for payload in payloads]


def sent_in(bursts: Sequence[Burst]) -> list[bytes]:
    """Return the datagrams that were sent to the host."""
    frames = [Ether(checked(burst)) for burst in bursts]
    assert all(each.dst == HOST_MAC and each[UDP].dport == HOST_PORT for each in frames)
    return [bytes(each[UDP].payload)[: each[UDP].len - 8] for each in frames]


def expect(
    bench: BridgeBench, payloads: Sequence[bytes], idle: int = 3000, **options: Any
) -> list[tuple[int, list[Answered]]]:
    """Send datagrams; expect answers and storage as by the rules, and return the answers."""
    real, model = device(), device()
    rules = NetworkRules(model)
    sent = sent_in(bench.run(line_of(payloads, idle), real, **options))
    assert sent == [each for payload in payloads for each in rules.answers(payload)]
    assert real.memory == model.memory
    assert real.window == model.window
    assert real.changes == model.changes, "more was written than changed"
    return [answers_in(each) for each in sent]


def start(session: int = SESSION, number: int = 255, nonce: int = 0x1000) -> bytes:
    """Return the datagram of a HELLO that expects ``number`` + 1."""
    return datagram_of(session, [hello(number, nonce)])


def test_writes_and_reads(bench: BridgeBench) -> None:
    data = random.Random(2).randbytes(512)
    contents = [write(0, 16, data), read(1, 16, 512), write(2, CONTROL_BASE + 8, b"wordword")]
    contents += [read(3, CONTROL_BASE + 4, 12), read(4, 3, 1), write(5, 7, b"abc"), read(6, 5, 6)]
    payloads = [start(), *(datagram_of(SESSION, [each]) for each in contents)]
    answers = expect(bench, payloads, idle=5000)
    assert answers[0] == (SESSION, [Answered(255, 0, bytes.fromhex("0100004000100000"))])
    assert answers[2] == (SESSION, [Answered(1, Answer.DONE, data)])


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
    """1,464 bytes of answers fit."""
    sizes = [512, 512, 425, 3, 512, 512, 424, 1, 512, 512, 428, 512, 512, 429]
    reads = [read(number, number, size) for number, size in enumerate(sizes)]
    answers = expect(bench, [start(), datagram_of(SESSION, reads)], after=60_000)
    assert [len(each) for _, each in answers] == [1, 3, 3, 3, 3, 2]


def test_a_repetition_is_answered_and_not_executed(bench: BridgeBench) -> None:
    first = datagram_of(SESSION, [write(0, 0, b"old!"), read(1, 0, 4)])
    second = datagram_of(SESSION, [write(2, 0, b"new!")])
    answers = expect(bench, [start(), first, second, first, second])
    assert answers[3][1] == [Answered(0, 0), Answered(1, 0, b"new!")]


def test_out_of_turn(bench: BridgeBench) -> None:
    """One complaint is made, and nothing behind the request in its datagram is executed."""
    late = datagram_of(SESSION, [write(5, 0, b"late"), write(0, 0, b"now!")])
    half = datagram_of(SESSION, [write(0, 8, b"this"), write(2, 8, b"not!"), write(1, 8, b"nor!")])
    then = datagram_of(SESSION, [read(1, 8, 4)])
    answers = expect(bench, [start(number=127), start(), late, late, half, late, then, late])
    kinds = [[each.kind for each in found] for _, found in answers]
    expected = Answer.EXPECTED
    assert kinds == [[0], [0], [expected], [0, expected], [0], [expected]]


def test_refused(bench: BridgeBench) -> None:
    contents = [
        read(0, 1 << 16, 1),
        write(1, (1 << 16) - 1, b"12"),
        read(2, 0, 513),
        read(3, 0, 1024),
        read(4, 0, 65535),
        write(5, 0, bytes(513)),
        request(6, 4, 0, 0),
        request(7, 255, 0, 8),
        read(8, CONTROL_BASE + 1, 4),
        write(9, CONTROL_BASE, b"123"),
        read(10, 0, 4),
    ]
    answers = expect(bench, [start(), datagram_of(SESSION, contents)], after=12_000)
    assert [each.kind for each in answers[1][1]] == [Answer.REFUSED] * 10 + [Answer.DONE]


def test_sessions(bench: BridgeBench) -> None:
    mine = datagram_of(SESSION, [write(0, 0, b"mine")])
    other = datagram_of(OTHER, [write(0, 0, b"their")])
    taken = start(OTHER, nonce=1 << TAKE_OVER)
    answers = expect(bench, [mine, other, datagram_of(0, [write(0, 0, b"none")])])
    assert answers == []
    answers = expect(bench, [start(), other, start(OTHER, 9, 0xFFFFFFFE), other, mine])
    assert [each for _, found in answers for each in found][1:] == [
        Answered(9, BUSY),
        Answered(0, Answer.DONE),
    ]
    answers = expect(bench, [start(), mine, taken, mine, other, start(), start(OTHER)])
    assert [session for session, _ in answers] == [SESSION, SESSION, OTHER, OTHER, SESSION, OTHER]


def test_goodbye(bench: BridgeBench) -> None:
    end = datagram_of(SESSION, [goodbye(77)])
    mine = [datagram_of(SESSION, [write(number, 0, b"mine")]) for number in range(3)]
    payloads = [end, start(), mine[0], end, end, mine[1], start(OTHER), end, start(OTHER), mine[2]]
    answers = expect(bench, payloads)
    kinds = [each.kind for _, found in answers for each in found]
    assert kinds == [0, 0, 0, 0, 0, BUSY, 0, 0]


def test_the_interrupt_line_is_reported(bench: BridgeBench) -> None:
    real = device()
    real.interrupt = True
    sent = sent_in(bench.run(line_of([start()]), real))
    assert answers_in(sent[0])[1][0].interrupt


@pytest.mark.parametrize("seed", seeds(2, 20))
@pytest.mark.parametrize("stalls", [False, True])
def test_random_requests(bench: BridgeBench, seed: int, stalls: bool) -> None:
    rng = random.Random(seed)
    payloads = [start()]
    number = 0
    for _ in range(12):
        contents: list[bytes] = []
        while sum(len(each) + 3 for each in contents) < 1000 and rng.random() < 0.85:
            contents.append(random_request(rng, number, 200))
            number += 1
        if contents:
            payloads += [datagram_of(SESSION, contents)] * rng.choice([1, 1, 2])
    expect(bench, payloads, idle=30_000 if stalls else 12_000, stalls=stalls, after=30_000)
