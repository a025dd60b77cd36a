"""The decoder decodes COBS byte by byte, without delay, and detects truncated blocks."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from bitlane_rtl.serial.cobs import CobsDecoder
from support.rtl.streams import compiled, simulate
from support.serial.frames import cobs_decode, cobs_encode

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
    dut = compiled(CobsDecoder)
    frames: list[Frame] = []

    async def bench(ctx: Any) -> None:
        data = bytearray()
        broken = False
        for byte in line:
            ctx.set(dut.i.byte, byte & 0xFF)
            ctx.set(dut.i.error, byte == ERROR)
            for cycle in range(gap + 1):
                ctx.set(dut.i.valid, cycle == gap)
                broken |= bool(ctx.get(dut.broken))
                if ctx.get(dut.valid):
                    assert cycle == gap
                    assert not ctx.get(dut.end)
                    data.append(ctx.get(dut.byte))
                if ctx.get(dut.end):
                    assert (cycle, byte) == (gap, 0)
                    frames.append(Frame(bytes(data), bool(ctx.get(dut.empty)), broken))
                    data.clear()
                    broken = False
                await ctx.tick()
        assert not data, "the line must end with a delimiter"

    simulate(dut, bench)
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


@pytest.mark.parametrize("place", range(5))
def test_a_byte_without_stop_bit_breaks_its_frame_alone(place: int) -> None:
    line = list(cobs_encode(b"abc"))
    line.insert(place, ERROR)
    broken, following = decode([*line, 0, *cobs_encode(b"de"), 0])
    assert broken.broken
    assert not broken.empty
    assert [following] == good([b"de"])


def test_errors_alone_are_no_empty_frame() -> None:
    [frame] = decode([ERROR, 0])
    assert (frame.empty, frame.broken) == (False, True)
