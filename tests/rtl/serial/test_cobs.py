"""COBS is decoded without delay; the checksum is `zlib.crc32`; complaints fit between answers."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pytest

from bitlane_rtl.abi.frames import Answer
from bitlane_rtl.serial.checksum import Checksum
from bitlane_rtl.serial.cobs import CobsDecoder
from bitlane_rtl.serial.complaint_inserter import ComplaintInserter
from support.rtl.streams import Sink, Source, Stalls, clocked, compiled, simulate
from support.serial.frames import Reply, cobs_decode, cobs_encode

ERROR = -1
"""Stands for a byte without a stop bit."""


@dataclass
class Frame:
    """The decoded bytes up to a delimiter, and the decoder's flags."""

    data: bytes
    empty: bool
    broken: bool


def decode(line: Iterable[int], *, gap: int = 0) -> list[Frame]:
    """Decode ``line``, with ``gap`` idle cycles before each byte; sample every cycle."""
    inputs = [
        {"i.byte": byte & 0xFF, "i.error": byte == ERROR, "i.valid": cycle == gap}
        for byte in line
        for cycle in range(gap + 1)
    ]
    names = ("valid", "byte", "end", "empty", "broken")
    seen = zip(*clocked(compiled(CobsDecoder), inputs, *names), strict=True)
    frames, data, broken = list[Frame](), bytearray(), False
    for given, (valid, byte, end, empty, breaks) in zip(inputs, seen, strict=True):
        assert valid + end <= given["i.valid"]
        broken |= bool(breaks)
        data += bytes([byte] * valid)
        if end:
            assert given["i.byte"] == 0
            frames.append(Frame(bytes(data), bool(empty), broken))
            data, broken = bytearray(), False
    assert not data, "the line must end with a delimiter"
    return frames


def good(contents: Sequence[bytes]) -> list[Frame]:
    return [Frame(data, empty=False, broken=False) for data in contents]


CONTENTS = [
    b"\x00",
    b"\x01",
    bytes(3),
    b"\x01\x00\x02",
    b"\xff" * 253,
    b"\xff" * 254,
    b"\x01" * 254 + b"\x00",
    b"\x00" + b"\x01" * 254,
    b"\x07" * 255,
    b"\xfe" * 508,
    b"\x08" * 509,
    bytes(range(256)) * 2,
    bytes(range(1, 256)) * 2,
]


@pytest.mark.parametrize("shortest", [False, True])
@pytest.mark.parametrize("gap", [0, 2])
def test_what_was_encoded_comes_out(gap: int, shortest: bool) -> None:
    line = b"".join(cobs_encode(data, shortest=shortest) + b"\0" for data in CONTENTS)
    assert decode(line, gap=gap) == good(CONTENTS)


def test_random_contents() -> None:
    rng = random.Random(3)
    contents = [
        bytes(rng.choice([0, 1, 255, rng.randrange(256)]) for _ in range(rng.randrange(1, 600)))
        for _ in range(25)
    ]
    line = b"".join(cobs_encode(data) + b"\0" for data in contents)
    assert decode(line) == good(contents)


def test_random_lines() -> None:
    rng = random.Random(4)
    for _ in range(30):
        line = bytes(rng.choice([1, 2, 3, 4, 255, rng.randrange(1, 256)]) for _ in range(40))
        [frame] = decode(line + b"\0")
        expected = cobs_decode(line)
        assert frame.broken == (expected is None), line.hex()
        assert frame.broken or frame.data == expected, line.hex()


def test_a_delimiter_starts_afresh_wherever_it_comes() -> None:
    whole = cobs_encode(b"abc\x00def")
    for place in range(1, len(whole)):
        frames = decode(whole[:place] + b"\0" + whole + b"\0")
        assert frames[0].broken == (cobs_decode(whole[:place]) is None), place
        assert frames[1:] == good([b"abc\x00def"]), place


def test_nothing_between_delimiters_is_empty() -> None:
    frames = decode(b"\0\0" + cobs_encode(b"x") + b"\0\0")
    nothing = Frame(b"", empty=True, broken=False)
    assert frames == [nothing, nothing, *good([b"x"]), nothing]


def test_a_code_alone_is_a_frame_without_data() -> None:
    assert decode(b"\x01\0") == good([b""])


@pytest.mark.parametrize("replaced", [0, 1])
@pytest.mark.parametrize("place", range(4))
def test_a_byte_without_stop_bit_breaks_its_frame_alone(place: int, replaced: int) -> None:
    line = list(cobs_encode(b"abc"))
    line[place : place + replaced] = [ERROR]
    broken, following = decode([*line, 0, *cobs_encode(b"de"), 0])
    assert broken.broken
    assert not broken.empty
    assert [following] == good([b"de"])


def test_errors_alone_are_no_empty_frame() -> None:
    [frame] = decode([ERROR, 0])
    assert (frame.empty, frame.broken) == (False, True)


# --- the checksum ---------------------------------------------------------------------------------

STEP = 9
"""Cycles from one ``start`` to the next."""


async def step(ctx: Any, dut: Checksum, byte: int, *, closing: bool) -> tuple[int, bool]:
    """One byte; returns ``byte`` at the end, and whether it differed from the CRC's."""
    ctx.set(dut.start, 1)
    ctx.set(dut.data, byte)
    await ctx.tick()
    ctx.set(dut.start, 0)
    ctx.set(dut.data, byte ^ 0xFF)
    ctx.set(dut.closing, closing)
    assert ctx.get(dut.byte) == byte
    differs = False
    for _ in range(STEP - 1):
        assert ctx.get(dut.busy)
        differs |= bool(ctx.get(dut.differs))
        await ctx.tick()
    assert not ctx.get(dut.busy)
    assert not ctx.get(dut.differs)
    return ctx.get(dut.byte), differs


async def clear(ctx: Any, dut: Checksum) -> None:
    ctx.set(dut.clear, 1)
    await ctx.tick()
    ctx.set(dut.clear, 0)


MESSAGES = [b"", b"\x00", b"\xff", b"123456789", bytes(20), b"\xff" * 20] + [
    random.Random(seed).randbytes(seed) for seed in range(1, 12)
]


def test_the_crc_is_given_out() -> None:
    dut = compiled(Checksum)

    async def bench(ctx: Any) -> None:
        for message in MESSAGES:
            for byte in message:
                assert await step(ctx, dut, byte, closing=False) == (byte, False)
            given = bytes([(await step(ctx, dut, 0x5A, closing=True))[0] for _ in range(4)])
            assert given == crc32(message).to_bytes(4, "little"), message.hex()
            await clear(ctx, dut)

    simulate(dut, bench)


@pytest.mark.parametrize("flipped", [None, *range(32)])
def test_a_crc_is_compared(flipped: int | None) -> None:
    dut = compiled(Checksum)
    message = random.Random(flipped).randbytes(5)
    right = crc32(message)
    received = (right if flipped is None else right ^ 1 << flipped).to_bytes(4, "little")

    async def bench(ctx: Any) -> None:
        for byte in message:
            await step(ctx, dut, byte, closing=False)
        differs = [(await step(ctx, dut, byte, closing=True))[1] for byte in received]
        assert differs == [flipped is not None and flipped // 8 == n for n in range(4)]

    simulate(dut, bench)


def test_any_time_may_pass_between_bytes() -> None:
    dut = compiled(Checksum)
    message = random.Random(0).randbytes(9)

    async def bench(ctx: Any) -> None:
        for gap, byte in enumerate(message):
            await step(ctx, dut, byte, closing=False)
            for _ in range(gap):
                await ctx.tick()
                assert ctx.get(dut.byte) == byte
        given = bytes([(await step(ctx, dut, 0, closing=True))[0] for _ in range(4)])
        assert given == crc32(message).to_bytes(4, "little")

    simulate(dut, bench)


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
