"""The serial bridge at its pins: requests arrive at ``rx``, answers leave at ``tx``."""

import random
from typing import Any

import numpy as np
import pytest

from bitlane_rtl.abi import CONTROL_BASE
from bitlane_rtl.abi.frames import LINK_VERSION, SEQUENCES, Answer, Request
from bitlane_rtl.configuration import Configuration
from support.seeds import slow
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


def test_requests_one_after_the_other(bench: SerialBench) -> None:
    rules = start(bench)
    rng = random.Random(1)
    for _ in range(150):
        line = frame(random_request(rng, rules.expected, 512), shortest=rng.random() < 0.5)
        bench.interrupt(level := rng.random() < 0.3)
        rules.device.interrupt = level
        assert_same_answers(bench, rules, line)
    bench.interrupt(False)
    assert_same_storage(bench, rules)


@pytest.mark.parametrize(
    ("gap", "stalls"),
    [(0, True), (5, False), slow(0, False), slow(5, True), slow(200, False), slow(200, True)],
)
def test_windows_of_requests(bench: SerialBench, gap: int, stalls: bool) -> None:
    """The host sends as many requests as the board buffers before it reads the answers."""
    bench.stall(stalls)
    rules = start(bench, 200)
    rng = random.Random(f"{gap} {stalls}")
    for _ in range(15):
        contents: list[bytes] = []
        while sum(len(content) + 4 for content in contents) < 1900:
            contents.append(random_request(rng, rules.expected + len(contents)))
        assert_same_answers(bench, rules, lines(contents), gap)
    assert_same_storage(bench, rules)
    bench.stall(False)


CONTENTS = [bytes, lambda size: b"\xff" * size, random.Random(3).randbytes]


@pytest.mark.parametrize("fill", CONTENTS, ids=["zeros", "ones", "random"])
def test_sizes_at_which_blocks_are_full(bench: SerialBench, fill: Any) -> None:
    rules = start(bench)
    for size in (1, 240, *range(243, 258), 498, *range(500, 513)):
        contents = write(rules.expected, 77, fill(size)), read(rules.expected + 1, 77, size)
        assert_same_answers(bench, rules, lines(contents))
    assert_same_storage(bench, rules)


def test_numbers_go_round(bench: SerialBench) -> None:
    rules = start(bench, SEQUENCES - 300)
    for _ in range(6):
        contents = [read(rules.expected + n, 0, 0) for n in range(100)]
        line = lines(contents)
        expected = rules.answers(line)
        assert len(expected) == 100
        assert replies(bench.exchange(line)) == expected


@pytest.mark.parametrize("ahead", [0, 1, 2, 255, 256, 8191, 8192, 8193, 16128, 16383])
@pytest.mark.parametrize("expected", [0, 1, 255, 8192, 16383])
def test_sequence_rules(bench: SerialBench, expected: int, ahead: int) -> None:
    """A number is accepted, ahead, or a repetition; then the expected request is accepted."""
    rules = start(bench, expected)
    for number in (expected + ahead, expected + ahead, expected, expected + 1):
        assert_same_answers(bench, rules, frame(write(number, number % 256, b"\x01\x02")))
    assert_same_events(bench, rules)


def test_a_write_that_is_repeated_is_executed_once(bench: SerialBench) -> None:
    start(bench)
    contents = [write(n, 8 * n, bytes([n] * 8)) for n in range(20)]
    answers = [Reply(n, Answer.DONE) for n in range(20)]
    for _ in range(3):
        assert replies(bench.exchange(lines(contents))) == answers
    assert [(event.address, event.data) for event in bench.events()] == [
        (8 * n + place, n) for n in range(20) for place in range(8)
    ]


def test_a_register_that_is_written_again_is_written_once(bench: SerialBench) -> None:
    start(bench)
    line = frame(write(0, CONTROL_BASE + 0x1C, b"\x01\x00\x00\x00"))
    for _ in range(3):
        assert replies(bench.exchange(line)) == [Reply(0, Answer.DONE)]
    assert [(event.address, event.data) for event in bench.events()] == [(CONTROL_BASE + 0x1C, 1)]


@pytest.mark.parametrize(
    ("address", "size", "answer"),
    [
        (0xFFFF, 1, Answer.DONE),
        (0xFFFF, 2, Answer.REFUSED),
        (0x1_0000, 1, Answer.REFUSED),
        (0xFE00, 512, Answer.DONE),
        (0xFE01, 512, Answer.REFUSED),
        (0xFFFF_FFFF, 1, Answer.REFUSED),
        (0xFFFF_FFFF, 2, Answer.REFUSED),
        (0xFFFF_FF00, 512, Answer.REFUSED),
        (CONTROL_BASE - 1, 1, Answer.REFUSED),
        (CONTROL_BASE - 4, 8, Answer.REFUSED),
        (CONTROL_BASE, 4, Answer.DONE),
        (CONTROL_BASE, 3, Answer.REFUSED),
        (CONTROL_BASE + 2, 4, Answer.REFUSED),
        (CONTROL_BASE + 0x3FFC, 4, Answer.DONE),
        (CONTROL_BASE + 0x3FFC, 8, Answer.REFUSED),
        (CONTROL_BASE + 0x4000, 4, Answer.REFUSED),
        (CONTROL_BASE + 0x4000, 0, Answer.DONE),
    ],
)
def test_addresses_that_are_refused(
    bench: SerialBench, address: int, size: int, answer: Answer
) -> None:
    rules = start(bench)
    data = random.Random(address).randbytes(size)
    for content in (write(0, address, data), read(1, address, size), read(2, 0, 4)):
        line = frame(content)
        expected = rules.answers(line)
        found = replies(bench.exchange(line), expected)
        assert found == expected
        assert found[0].kind == (answer if content[0] < 2 else Answer.DONE)
    units = size if address < CONTROL_BASE else size // 4
    assert len(bench.events()) == (units if answer == Answer.DONE else 0)
    assert_same_storage(bench, rules)


def test_a_ping_tells_the_interrupt_line(bench: SerialBench) -> None:
    start(bench)
    for number, level in enumerate([False, True, True, False]):
        bench.interrupt(level)
        answers = replies(bench.exchange(frame(read(number, 0, 0))))
        assert answers == [Reply(number, Answer.DONE, interrupt=level)]


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
