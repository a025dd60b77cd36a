"""Whatever noise does to the line: no damaged frame is executed, none twice, and it passes."""

import random

import numpy as np
import pytest

from bitlane_rtl.abi.frames import SEQUENCES, Answer
from support.seeds import seeds
from support.serial.bench import (
    DIVIDER,
    SerialBench,
    assert_same_answers,
    assert_same_events,
    start,
)
from support.serial.frames import (
    Levels,
    frame,
    lines,
    random_request,
    read,
    replies,
    uart_levels,
    write,
)


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
