"""The serial bridge at its pins: requests arrive at ``rx``, answers leave at ``tx``.

Whatever noise does to the line, no damaged frame is executed, none twice, and the noise passes. Its
share of data in long transfers is exact to the cycle.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import CONTROL_BASE, FRAME_DATA_BYTES, LINK_VERSION, SEQUENCES, Answer, Request
from bitlane_rtl.configuration import Configuration
from support.seeds import seeds, stride
from support.serial.bench import (
    DIVIDER,
    LAG,
    SerialBench,
    assert_same_answers,
    assert_same_events,
    assert_same_storage,
    start,
)
from support.serial.frames import (
    Levels,
    Reply,
    asked,
    frame,
    hello,
    lines,
    random_request,
    read,
    replies,
    request,
    uart_bytes,
    uart_levels,
    write,
)


@pytest.fixture(scope="module")
def bench() -> SerialBench:
    return SerialBench()


def test_an_answer_begins_after_its_latency(bench: SerialBench) -> None:
    start(bench)
    data, identity = b"\x00\xff", bytes([LINK_VERSION, 0, 0, 8, 0x0D, 0x0C, 0x0B, 0x0A])
    for content, answer in (
        (hello(7, 0x0A0B_0C0D), Reply(7, Answer.DONE, identity)),
        (write(8, 2, data), Reply(8, Answer.DONE)),
        (read(9, 2, 2), Reply(9, Answer.DONE, data, address=2)),
    ):
        levels = uart_levels(frame(content), DIVIDER)
        line, begins = uart_bytes(bench.play(levels), DIVIDER)
        assert replies(line, [answer]) == [answer]
        delimiter = LAG + len(levels) - 10 * DIVIDER
        writing = 2 if content[1] == Request.WRITE else 0  # a word, and a cycle behind it
        arrives = delimiter + 9 * DIVIDER + (DIVIDER + 1) // 2
        assert begins[0] == arrives + 20 + writing
        assert np.diff(begins).tolist() == [10 * DIVIDER] * (len(line) - 1)


CONTENTS = [bytes, lambda size: b"\xff" * size, random.Random(3).randbytes]


@pytest.mark.parametrize("fill", CONTENTS, ids=["zeros", "ones", "random"])
def test_sizes_at_which_blocks_are_full(bench: SerialBench, fill: Any) -> None:
    rules = start(bench)
    for size in (1, 240, *range(243, 258), 498, *range(500, 513)):
        contents = write(rules.expected, 77, fill(size)), read(rules.expected + 1, 77, size)
        assert_same_answers(bench, rules, lines(contents))
    assert_same_storage(bench, rules)


def test_more_than_the_board_buffers_is_dropped_and_asked_for_again(bench: SerialBench) -> None:
    """Six long answers block the bridge while six long writes arrive."""
    rules = start(bench)
    reads = [read(n, 512 * n, 512) for n in range(6)]
    writes = [write(6 + n, 0x8000 + 512 * n, bytes([n]) * 512) for n in range(6)]
    answers = replies(bench.exchange(lines(reads + writes)))
    [complaint] = [answer for answer in answers if answer.kind == Answer.EXPECTED]
    first_lost = complaint.number
    assert 6 < first_lost < 12
    answers.remove(complaint)
    assert answers == rules.answers(lines(reads + writes[: first_lost - 6]))
    assert_same_answers(bench, rules, lines(writes[first_lost - 6 :]))
    assert len(bench.events()) == 6 * 512
    assert_same_storage(bench, rules)


def test_the_line_before_a_session_is_no_part_of_it(bench: SerialBench) -> None:
    start(bench)
    for junk in (b"\x55" * 7, frame(hello(3, 9))[:-3], bytes(range(1, 256)) * 3):
        assert bench.exchange(junk) == b""
        complaint, answer = replies(bench.exchange(b"\0" + frame(hello(99, 1))))
        assert complaint.kind == Answer.EXPECTED
        assert (answer.number, answer.kind) == (99, Answer.DONE)


def test_another_memory_and_divider() -> None:
    """The memory's size is not a power of two, its base is not 0, and it stalls."""
    configuration = Configuration(
        data_width=32, address_width=16, memory_base=0x1000, memory_bytes=0x3000
    )
    bench = SerialBench(configuration, 11, stalls=True)
    rules = start(bench)
    rng = random.Random(8)
    for _ in range(100):
        content = random_request(rng, rules.expected)
        address = rng.choice([0xFF0, 0x3FF0, rng.randrange(0x5000)]) + rng.randrange(32)
        if content[4:8] < CONTROL_BASE.to_bytes(4, "big"):
            number, kind, size, _, data = asked(content)
            content = request(number, kind, address, size, data)
        assert_same_answers(bench, rules, frame(content))
    assert_same_storage(bench, rules)


# --- damage ---------------------------------------------------------------------------------------


def damaged(line: bytes, rng: random.Random) -> bytes:
    """``line`` with a byte lost, doubled, inserted or flipped, or with its end cut off."""
    if not line:
        return line
    place = rng.randrange(len(line))
    before, byte, after = line[:place], line[place : place + 1], line[place + 1 :]
    return rng.choice(
        [
            before + after,
            before + byte * 2 + after,
            before + rng.randbytes(1) + byte + after,
            before + bytes([byte[0] ^ 1 << rng.randrange(8)]) + after,
            before + bytes([byte[0] ^ rng.randrange(1, 256)]) + after,
            before,
        ]
    )


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_frame_by_frame(bench: SerialBench, seed: int) -> None:
    """Every answer and every write is the one that the rules give."""
    rng = random.Random(seed)
    rules = start(bench, rng.randrange(SEQUENCES))
    for _ in range(200):
        number = rules.expected + rng.choice([0] * 8 + [1, -1, -3, 100, -100])
        line = frame(random_request(rng, number, rng.choice([20, 300])))
        for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
            line = damaged(line, rng)
        line += b"\0" * rng.randrange(1, 3)
        assert_same_answers(bench, rules, line)
        assert_same_events(bench, rules)
        assert_same_answers(bench, rules, frame(read(rules.expected, 0, 1)))


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_window_by_window(bench: SerialBench, seed: int) -> None:
    """Frames back to back. When a complaint is sent is the board's business; the rest is exact."""
    rng = random.Random(100 + seed)
    rules = start(bench, rng.randrange(SEQUENCES))
    for _ in range(30):
        line = bytearray()
        for number in range(rules.expected, rules.expected + 12):
            entry = frame(random_request(rng, number, 40))
            line += damaged(entry, rng) if rng.random() < 0.15 else entry
        line += b"\0"
        expected = rules.answers(bytes(line))
        found = replies(bench.exchange(bytes(line)), expected)
        answers = [answer for answer in found if answer.kind != Answer.EXPECTED]
        assert answers == [answer for answer in expected if answer.kind != Answer.EXPECTED], seed
        assert len(found) <= len(expected), seed
        assert_same_events(bench, rules)


def noisy(levels: Levels, rng: np.random.Generator, rate: float) -> Levels:
    """``levels`` with pulses of 1 to 120 cycles, ``rate`` a cycle, each of them low or high."""
    result = levels.copy()
    for place in np.flatnonzero(rng.random(len(levels)) < rate):
        result[place : place + int(rng.integers(1, 2 << rng.integers(1, 7)))] = rng.integers(2)
    return result


@pytest.mark.parametrize("rate", [1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_noise_on_the_line(bench: SerialBench, rate: float, seed: int) -> None:
    """Writes are sent in windows, from the first one that has no answer, until all have one."""
    rng = np.random.default_rng([seed, int(1 / rate)])
    start(bench, 0)
    contents = [write(n, 16 * n, rng.bytes(16)) for n in range(100)]
    answered = 0
    for attempt in range(2000):
        if answered == len(contents):
            break
        # Even the best of hosts needs luck on such a line: a lone frame now and then.
        window = contents[answered : answered + (8 if attempt % 2 else 1)]
        levels = noisy(uart_levels(b"\0" + lines(window), DIVIDER), rng, rate)
        numbers = [
            answer.number
            for answer in replies(bench.exchange_levels(levels))
            if answer.kind == Answer.DONE
        ]
        assert numbers == sorted(numbers), "answers out of order"
        while answered < len(contents) and answered in numbers:
            answered += 1
    assert answered == len(contents), (seed, rate)
    events = [(event.address, event.data) for event in bench.events()]
    assert events == [(16 * n + at, contents[n][8 + at]) for n in range(100) for at in range(16)]


def test_a_break_on_the_line(bench: SerialBench) -> None:
    """The line is low for long, at any point of a frame."""
    rules = start(bench)
    levels = uart_levels(frame(write(0, 0, b"abc")), DIVIDER)
    for place in range(0, len(levels), 77):
        broken = np.concatenate([levels[:place], np.zeros(2000, np.uint8), levels[place:]])
        assert len(replies(bench.exchange_levels(broken))) <= 1
        good = frame(read(rules.expected, 0, 3))
        answers = replies(bench.exchange(b"\0" + good))
        rules.complained = False
        assert answers[-1:] == rules.answers(good), place
    assert bench.events() == []


# --- share of the line ----------------------------------------------------------------------------

FRAMES = 128 // stride(4)
"""Frames of a transfer; the quick tier sends 16 KiB, the others 64 KiB."""

BYTE_CYCLES = 10 * DIVIDER

Record = Callable[[str, object], None]


def blocks(reads: bool, writes: bool) -> list[bytes]:
    """Return requests for `FRAMES` frames in each selected direction."""
    rng = random.Random(1)
    requests: list[bytes] = []
    for n in range(FRAMES):
        address = FRAME_DATA_BYTES * (n % 64)
        if reads:
            requests.append(read(len(requests), address, FRAME_DATA_BYTES))
        if writes:
            data = rng.randbytes(FRAME_DATA_BYTES)
            requests.append(write(len(requests), 0x8000 + address, data))
    return requests


def transfer(bench: SerialBench, requests: Sequence[bytes]) -> tuple[int, int, list[int]]:
    """Send all requests without waiting for answers.

    Returns the cycles from the first bit of the first request to the last bit of the last answer,
    the cycles of the requests, and the cycles at which the bytes of answers begin.
    """
    start(bench)
    levels = uart_levels(lines(requests), DIVIDER)
    data, begins = uart_bytes(bench.play(levels), DIVIDER)
    answers = replies(data)
    assert [answer.number for answer in answers] == [*range(len(requests))]
    assert {answer.kind for answer in answers} == {Answer.DONE}
    # Answers lag by the latency of the player.
    return begins[-1] + BYTE_CYCLES - 8, len(levels), begins


def share(cycles: int) -> float:
    return FRAMES * FRAME_DATA_BYTES * BYTE_CYCLES / cycles


def report(record: Record, name: str, cycles: int) -> None:
    record(
        "report",
        f"serial link, {FRAMES // 2} KiB {name}: {cycles} cycles at {DIVIDER} a bit,"
        f" {share(cycles):.1%} of the line",
    )


def test_writes_alone(bench: SerialBench, record_property: Record) -> None:
    """Only the last answer follows the last bit of the requests."""
    cycles, sending, _ = transfer(bench, blocks(reads=False, writes=True))
    report(record_property, "up", cycles)
    assert cycles - sending < 2 * FRAME_DATA_BYTES + 10 * BYTE_CYCLES
    assert share(cycles) >= 0.95


def test_reads_alone(bench: SerialBench, record_property: Record) -> None:
    """The bytes of all answers follow each other without a gap."""
    cycles, _, begins = transfer(bench, blocks(reads=True, writes=False))
    report(record_property, "down", cycles)
    assert np.diff(begins).tolist() == [BYTE_CYCLES] * (len(begins) - 1)
    assert share(cycles) >= 0.95


@pytest.mark.slow
def test_both_at_once(bench: SerialBench, record_property: Record) -> None:
    cycles, _, _ = transfer(bench, blocks(reads=True, writes=True))
    report(record_property, "up and as much down at once", cycles)
    assert share(cycles) >= 0.90
