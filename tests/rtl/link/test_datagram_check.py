"""A datagram is let through if its CRC is right, which is zlib's."""

import random
import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from bitlane_rtl.abi import GOODBYE, Request
from bitlane_rtl.link.crc32 import Crc32
from bitlane_rtl.link.datagram_check import DatagramCheck
from cppsim import Model
from support.ethernet.datagrams import datagram_of, frames_in, goodbye
from support.ethernet.line import run
from support.seeds import seeds
from support.serial.frames import hello, random_request, read, request, with_crc, write

SESSION = 0x01020304


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(DatagramCheck())


def verdicts(model: Model, payloads: Sequence[bytes], gaps: random.Random | None) -> list[bool]:
    """Return whether each datagram is good. With ``gaps``, bytes do not follow each other."""
    byte, valid, reset = bytearray(), bytearray(), bytearray()
    ends = []
    for payload in payloads:
        byte.append(0)
        valid.append(0)
        reset.append(1)
        for each in payload:
            idle = gaps.choice([0, 0, 1, 3]) if gaps else 0
            byte += bytes([0xA5] * idle + [each])
            valid += bytes(idle) + b"\1"
            reset += bytes(idle + 1)
        ends.append(len(byte) + 1)
        byte += bytes(3)
        valid += bytes(3)
        reset += bytes(3)
    columns = {"byte": byte, "valid": valid, "reset": reset}
    inputs = {name: np.frombuffer(bytes(each), np.uint8) for name, each in columns.items()}
    good = run(model, inputs, ["good"])["good"]
    return [bool(good[end]) for end in ends]


def whole(*contents: bytes, session: int = SESSION) -> bytes:
    return datagram_of(session, contents)


GOOD = {
    "read": whole(read(1, 2, 3)),
    "write": whole(write(1, 2, b"abc")),
    "write of nothing": whole(write(1, 2, b"")),
    "hello": whole(hello(1, 2)),
    "goodbye": whole(goodbye(1)),
    "several": whole(*(write(n, n, bytes(range(n))) for n in range(20))),
    "unknown kinds": whole(*(request(1, kind, 2, 1023) for kind in (4, 8, 129, 130, 131, 255))),
    **{f"a write of {n}": whole(write(1, 2, b"\xff" * n)) for n in range(1020, 1024)},
    "a long read": whole(read(1, 2, 1023)),
    "full": whole(write(0, 0, bytes(512)), write(1, 0, bytes(512)), write(2, 0, bytes(416))),
    # The CRC looks like the head of a frame; these are those of a HELLO, GOODBYE and WRITE.
    **{
        f"CRC that looks like kind {kind}": next(
            payload
            for nonce in range(1 << 16)
            for payload in [whole(read(1, nonce, 3))]
            if payload[-3] == kind and payload[-1]
        )
        for kind in (Request.WRITE, Request.HELLO, GOODBYE)
    },
}
BAD = {
    "nothing": b"",
    "no frame": whole(),
    "half a frame": with_crc(whole(read(1, 2, 3))[:8]),
    "data missing": with_crc(whole(write(1, 2, b"abcde"))[:-8]),
    "data too long": with_crc(whole(write(1, 2, b"abcde"))[:-4] + bytes(4)),
    "a byte more": with_crc(whole(read(1, 2, 3))[:-4] + b"\0"),
    "a byte less": with_crc(whole(read(1, 2, 3))[:-5]),
    "data at an offset, a word too short": whole(request(1, Request.WRITE, 3, 2) + bytes(4)),
    "data at an offset, a word too long": whole(request(1, Request.WRITE, 3, 1) + bytes(8)),
    "SESSION 0": whole(read(1, 2, 3), session=0),
    "a HELLO before a read": whole(hello(1, 2), read(2, 2, 4)),
    "a HELLO behind a read": whole(read(1, 2, 4), hello(2, 2)),
    "a GOODBYE before a read": whole(goodbye(1), read(2, 2, 4)),
    "a GOODBYE behind a write": whole(write(1, 2, b"abcd"), goodbye(2)),
    **{
        f"kind {kind} of SIZE {size}": whole(request(1, kind, 2, size))
        for kind in (Request.HELLO, GOODBYE)
        for size in (1, 256, 512, 1023)
    },
}


@pytest.mark.parametrize("gaps", [None, random.Random(1)])
def test_kinds_of_datagrams(model: Model, gaps: random.Random | None) -> None:
    payloads = [*GOOD.values(), *BAD.values()]
    rng = random.Random(2)
    order = rng.choices(range(len(payloads)), k=400)
    found = verdicts(model, [payloads[place] for place in order], gaps)
    names = [*GOOD, *BAD]
    verdict = {(names[place], good) for place, good in zip(order, found, strict=True)}
    assert verdict == {*((name, True) for name in GOOD), *((name, False) for name in BAD)}


def test_a_write_needs_its_data(model: Model) -> None:
    payloads = [whole(request(1, Request.WRITE, 2, size)) for size in range(1024)]
    assert verdicts(model, payloads, None) == [True, *[False] * 1023]


def test_every_wrong_bit_is_noticed(model: Model) -> None:
    payload = whole(write(1, 2, b"abcdef"), read(2, 3, 4))
    damaged = [
        (int.from_bytes(payload, "little") ^ 1 << bit).to_bytes(len(payload), "little")
        for bit in range(8 * len(payload))
    ]
    assert not any(verdicts(model, damaged, None))


@pytest.mark.parametrize("seed", seeds(3, 30))
def test_random_datagrams_with_a_right_crc(model: Model, seed: int) -> None:
    """Headers are mutated, bytes removed or added, and the CRC computed anew."""
    rng = random.Random(seed)
    payloads = []
    for _ in range(500):
        contents = [random_request(rng, n, 30) for n in range(rng.randrange(1, 5))]
        content = bytearray(whole(*contents)[:-4])
        for _ in range(rng.randrange(3)):
            place = rng.randrange(len(content))
            choice = rng.randrange(4)
            if choice == 0:
                content[place] = rng.choice([0, 1, 2, 3, 4, rng.randrange(256)])
            elif choice == 1:
                del content[place & ~3 :][: rng.choice([4, 8])]
            elif choice == 2:
                content[place & ~3 : place & ~3] = rng.randbytes(rng.choice([1, 4, 4, 8]))
            elif len(content) > 8:
                content[5] = rng.choice([1, 2, 3])
        payloads.append(with_crc(bytes(content)))
    expected = [frames_in(payload) is not None for payload in payloads]
    assert verdicts(model, payloads, None) == expected
    assert 50 < sum(expected) < 450


# --- the CRC of words -----------------------------------------------------------------------------


@pytest.mark.parametrize("width", [8, 16, 32])
def test_random_words(width: int) -> None:
    """Some cycles have no word, and some words are ignored because the CRC is cleared."""
    rng = random.Random(width)
    cycles = 500
    words = [rng.getrandbits(width) for _ in range(cycles)]
    valid = [rng.random() < 0.7 for _ in range(cycles)]
    clear = [rng.random() < 0.05 for _ in range(cycles)]
    found = run(
        Model(Crc32(width)),
        {
            "data": np.array(words, np.uint32),
            "valid": np.array(valid, np.uint8),
            "clear": np.array(clear, np.uint8),
        },
        ["crc"],
    )["crc"]
    covered, lengths = b"", set()
    for cycle, word in enumerate(words):
        assert int(found[cycle]) == zlib.crc32(covered), f"cycle {cycle}"
        covered += word.to_bytes(width // 8, "little") if valid[cycle] else b""
        covered = b"" if clear[cycle] else covered
        lengths.add(len(covered))
    assert max(lengths) >= 20 * width // 8
