"""The UART is exact to the cycle; answers leave it no idle time; complaints fit between them.

What `CobsDecoder` and `Checksum` do is claimed of the receiver and the transmitter around them.
"""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.abi import Answer
from bitlane_rtl.link import AnswerWord
from bitlane_rtl.serial import AnswerTransmitter, ComplaintInserter, UartReceiver, UartTransmitter
from support.rtl.streams import STALLS, Sink, Source, Stalls, clocked, compiled, simulate
from support.serial.frames import Reply, answer_content, answer_line, uart_bytes, uart_levels

DIVIDERS = (8, 9, 13, 255, 256)

Arrival = tuple[int, int | None]
"""A cycle and its byte, or ``None`` if the stop bit was missing."""


def receive(levels: Sequence[int], divider: int) -> list[Arrival]:
    """Drive ``rx`` with ``levels``, one per cycle; return all arrivals."""
    inputs = [{"rx": level} for level in levels]
    seen = clocked(compiled(UartReceiver, divider), inputs, "o.valid", "o.byte", "o.error")
    arrivals = enumerate(zip(*seen, strict=True))
    return [(cycle, None if error else byte) for cycle, (valid, byte, error) in arrivals if valid]


def latency(divider: int) -> int:
    """Return the cycles from the falling edge of the line to the arrival of the byte."""
    return 9 * divider + (divider + 1) // 2 + 1


def idle(cycles: int) -> list[int]:
    return [1] * cycles


def sent(data: bytes, divider: int) -> list[int]:
    levels: list[int] = uart_levels(data, divider).tolist()
    return levels


@pytest.mark.parametrize("divider", DIVIDERS)
def test_a_byte_arrives_after_its_latency(divider: int) -> None:
    levels = idle(5) + sent(b"\xa6", divider) + idle(3 * divider)
    assert receive(levels, divider) == [(5 + latency(divider), 0xA6)]


@pytest.mark.parametrize("divider", [8, 9])
def test_bytes_follow_each_other_without_a_gap(divider: int) -> None:
    data = bytes(range(256)) if divider == 8 else bytes([0, 255, 1, 128, 0x55, 0xAA])
    arrivals = receive(sent(data, divider) + idle(4), divider)
    expected = [(10 * divider * n + latency(divider), byte) for n, byte in enumerate(data)]
    assert arrivals == expected


def test_bytes_come_at_any_time() -> None:
    rng = random.Random(1)
    levels: list[int] = []
    expected: list[Arrival] = []
    for byte in rng.randbytes(60):
        levels += idle(rng.choice([0, 1, 2, 3, 7, 8, 9, 40]))
        expected.append((len(levels) + latency(8), byte))
        levels += sent(bytes([byte]), 8)
    assert receive(levels, 8) == expected


@pytest.mark.parametrize("error", [-0.04, -0.02, 0.02, 0.04])
@pytest.mark.parametrize("divider", [8, 16])
def test_the_other_sides_clock_may_be_off(divider: int, error: float) -> None:
    rng = random.Random(f"{divider} {error}")
    data = bytes([0, 255, 0x55, 0xAA]) + rng.randbytes(20)
    bits = np.array([bit for byte in data for bit in sent(bytes([byte]), 1)] + [1, 1])
    for _ in range(2):
        times = (np.arange(int(len(bits) * divider * (1 + error)) - 2) + rng.random()) / divider
        levels = bits[(times / (1 + error)).astype(int)].tolist()
        assert [byte for _, byte in receive(levels, divider)] == list(data)


@pytest.mark.parametrize("divider", [8, 9, 16])
def test_a_glitch_is_no_start_bit(divider: int) -> None:
    for width in range(1, (divider + 1) // 2):
        levels = idle(4) + [0] * width + idle(2) + sent(b"\x5a", divider) + idle(divider)
        at = 6 + width + latency(divider)
        assert receive(levels, divider) == [(at, 0x5A)], f"{width} cycles"


@pytest.mark.parametrize("data", [b"\x00", b"\xff", b"\x35"])
def test_a_missing_stop_bit_is_an_error(data: bytes) -> None:
    levels = sent(data, 8)
    levels[72:80] = [0] * 8
    levels += idle(4) + sent(b"\x81", 8) + idle(4)
    assert receive(levels, 8) == [(latency(8), None), (84 + latency(8), 0x81)]


@pytest.mark.parametrize("cycles", [80, 100, 1000])
def test_a_break_is_one_error(cycles: int) -> None:
    levels = [0] * cycles + idle(1) + sent(b"\x42", 8) + idle(4)
    assert receive(levels, 8) == [(latency(8), None), (cycles + 1 + latency(8), 0x42)]


@pytest.mark.parametrize("divider", DIVIDERS)
def test_what_is_sent(divider: int, stalls: Stalls) -> None:
    data = random.Random(divider).randbytes(0 if divider > 20 else 25) + b"\x00\xff"
    dut = compiled(UartTransmitter, divider)
    source = Source(dut.i, list(data), stalls)
    levels: list[int] = []

    async def line(ctx: Any) -> None:
        while len(source.cycles) < len(data) or len(levels) < source.cycles[-1] + 12 * divider:
            _, _, level = await ctx.tick().sample(dut.tx)
            levels.append(level)

    simulate(dut, source, line)
    found, begins = uart_bytes(np.array(levels, np.uint8), divider)
    assert found == data
    assert begins == [cycle + 1 for cycle in source.cycles]
    if not stalls.probability:
        assert source.cycles == [10 * divider * n for n in range(len(data))]


# --- answers --------------------------------------------------------------------------------------


def payloads(contents: Sequence[bytes]) -> list[dict[str, int]]:
    return [
        {"data": int.from_bytes(content[n : n + 4], "little"), "last": n == len(content) - 4}
        for content in contents
        for n in range(0, len(content), 4)
    ]


def transmit(
    contents: Sequence[bytes], stalls: Stalls = STALLS[0], deadline: int = 20_000
) -> tuple[Source, Sink]:
    dut = compiled(AnswerTransmitter)
    expected = b"".join(map(answer_line, contents))
    source = Source(dut.i, payloads(contents), stalls)
    sink = Sink(dut.o, len(expected), stalls, idle=40)
    simulate(dut, source, sink, deadline=deadline)
    assert bytes(sink.bits) == expected
    return source, sink


SHORT = [b"\0\0\0\0", b"\1\0\0\0", b"\0\0\0\1", b"\7\x80\xff\0", bytes(12), b"\xff" * 12]


def test_short_answers(stalls: Stalls) -> None:
    transmit(SHORT + [random.Random(n).randbytes(4 * n + 4) for n in range(8)], stalls)


@pytest.mark.parametrize("size", [244, 248, 252, 256, 504, 508, 516])
def test_blocks_that_are_full(size: int) -> None:
    transmit([b"\xff" * size, b"\x01" * (size - 1) + b"\x00"])


def test_a_full_block_that_ends_with_the_frame() -> None:
    """The code 255 of the full block is followed by the code of an empty block."""
    content = next(
        content
        for content in (b"\x01" * 502 + n.to_bytes(2, "little") for n in range(0x101, 0x10000))
        if 0 not in answer_line(content)[:-1]
    )
    line = answer_line(content)
    assert line[-3:] == b"\xff\x01\x00"
    assert answer_content(line[:-1]) == content
    transmit([content, b"\x05\x06\x07\x08"])


def test_a_full_block_within_the_crc() -> None:
    transmit([b"\x02" * 252])


def test_cycles() -> None:
    source, sink = transmit([b"\x01\x02\x00\x03"])
    # Each byte of the input takes 11 cycles; the last code and the delimiter follow at once.
    assert source.cycles == [0]
    assert sink.cycles[:4] == [9, 20, 31, 42]
    assert np.diff(sink.cycles).tolist() == [11, 11, 11, 10, 10, 10, 10, 2, 1]
    # The code of a full block takes 2 more cycles.
    source, _ = transmit([b"\x01" * 260])
    assert np.diff(source.cycles).tolist() == [44] * 63 + [46]


class _Line(wiring.Component):
    """The transmitter connected to a UART."""

    i: In(stream.Signature(AnswerWord))
    tx: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.transmitter = transmitter = AnswerTransmitter()
        m.submodules.uart = uart = UartTransmitter(8)
        wiring.connect(m, wiring.flipped(self.i), transmitter.i)
        wiring.connect(m, transmitter.o, uart.i)
        m.d.comb += self.tx.eq(uart.tx)
        return m


def test_the_line_is_never_idle() -> None:
    """Neither codes between the bytes nor the start of the next answer leave a gap."""
    contents = [b"\xff" * 260, b"\x00" * 4, b"\x01\x02\x03\x04", b"\x01" * 252]
    dut = compiled(_Line)
    source = Source(dut.i, payloads(contents))
    levels: list[int] = []
    expected = b"".join(map(answer_line, contents))

    async def line(ctx: Any) -> None:
        for _ in range(80 * len(expected) + 200):
            _, _, level = await ctx.tick().sample(dut.tx)
            levels.append(level)

    simulate(dut, source, line, deadline=60_000)
    data, begins = uart_bytes(np.array(levels, np.uint8), 8)
    assert data == expected
    assert np.diff(begins).tolist() == [80] * (len(expected) - 1)


# --- complaints -----------------------------------------------------------------------------------

COMPLAINTS = [0x3FFF, 0x0001, 0x2A55, 0x1500, *range(256, 276)]


def test_complaints_are_answered_between_answers(stalls: Stalls) -> None:
    dut = compiled(ComplaintInserter)
    rng = random.Random(1)
    answers = [[rng.getrandbits(32) for _ in range(rng.randrange(1, 6))] for _ in range(100)]
    words = [
        {"data": word, "last": place == len(answer) - 1}
        for answer in answers
        for place, word in enumerate(answer)
    ]
    source = Source(dut.i, words, stalls)
    sink = Sink(dut.o, len(words) + len(COMPLAINTS), stalls)
    expected = []

    async def complain(ctx: Any) -> None:
        for index, number in enumerate(COMPLAINTS):
            ctx.set(dut.interrupt, index % 2)
            await ctx.tick().repeat(2 + rng.randrange(12))
            ctx.set(dut.complaint.expected, number)
            ctx.set(dut.complaint.valid, 1)
            await ctx.tick().until(dut.complaint.answered)
            ctx.set(dut.complaint.valid, 0)
            content = Reply(number, Answer.EXPECTED, interrupt=bool(index % 2)).content
            expected.append([int.from_bytes(content, "little")])

    simulate(dut, source, sink, complain)
    found: list[list[int]] = [[]]
    for word in sink.payloads:
        found[-1].append(word.data)
        if word.last:
            found.append([])
    assert found.pop() == []
    assert len(expected) == len(COMPLAINTS)
    assert [each for each in found if each in expected] == expected
    assert [each for each in found if each not in expected] == answers


def test_a_complaint_takes_priority() -> None:
    """Over answers that are not yet offered; alone, it is answered at once."""
    given = {"o.ready": 1, "complaint.expected": 7, "i.p.last": 1}
    inputs = [
        given | {"complaint.valid": complains, "i.valid": offered}
        for complains, offered in ((1, 0), (1, 1), (0, 1))
    ]
    answered, taken = clocked(compiled(ComplaintInserter), inputs, "complaint.answered", "i.ready")
    assert answered == (1, 1, 0)
    assert taken[1:] == (0, 1)
