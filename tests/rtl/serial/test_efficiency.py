"""Share of the line that carries data in long transfers, exact to the cycle."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from bitlane_rtl.abi.frames import FRAME_DATA_BYTES, Answer
from support.serial.bench import DIVIDER, SerialBench, start
from support.serial.frames import lines, read, replies, uart_bytes, uart_levels, write

FRAMES = 128
"""Frames of 64 KiB."""

BYTE_CYCLES = 10 * DIVIDER

Record = Callable[[str, object], None]


def blocks(reads: bool, writes: bool) -> list[bytes]:
    """Return requests for 64 KiB in each selected direction."""
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
        f"serial link, 64 KiB {name}: {cycles} cycles at {DIVIDER} a bit,"
        f" {share(cycles):.1%} of the line",
    )


def test_writes_alone(bench: SerialBench, record_property: Record) -> None:
    """Only the last answer follows the last bit of the requests."""
    cycles, sending, _ = transfer(bench, blocks(reads=False, writes=True))
    report(record_property, "up", cycles)
    assert cycles - sending < 2 * FRAME_DATA_BYTES + 10 * BYTE_CYCLES
    assert share(cycles) >= 0.95


def test_reads_alone(bench: SerialBench, record_property: Record) -> None:
    """The bytes of all answers, 64 KiB, follow each other without a gap."""
    cycles, _, begins = transfer(bench, blocks(reads=True, writes=False))
    report(record_property, "down", cycles)
    assert np.diff(begins).tolist() == [BYTE_CYCLES] * (len(begins) - 1)
    assert share(cycles) >= 0.95


@pytest.mark.slow
def test_both_at_once(bench: SerialBench, record_property: Record) -> None:
    cycles, _, _ = transfer(bench, blocks(reads=True, writes=True))
    report(record_property, "up and 64 KiB down at once", cycles)
    assert share(cycles) >= 0.90
