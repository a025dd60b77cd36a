"""The MAC's receiver outputs every legal frame whole, and calls none good that is not."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from bitlane_rtl.ethernet.mac_receiver import MacReceiver
from cppsim import Model
from support.ethernet.line import HEAD, Burst, frame, gmii, on_line, run, with_fcs

PORTS = ("o__valid", "o__byte", "o__end", "o__good")


@pytest.fixture(scope="module")
def compiled() -> Model:
    return Model(MacReceiver())


class Received:
    """The frames that a receiver outputs, each with its verdict."""

    def __init__(self, model: Model, bursts: Sequence[Burst]) -> None:
        model.reset()
        inputs = {f"i__{name}": column for name, column in gmii(bursts).items()}
        out = run(model, inputs, PORTS)
        self.frames: list[tuple[bytes, bool]] = []
        ends = np.flatnonzero(out["o__end"])
        assert not (out["o__valid"] & out["o__end"]).any()
        begin = 0
        for end in ends:
            inside = out["o__valid"][begin:end] == 1
            data = out["o__byte"][begin:end][inside].astype(np.uint8).tobytes()
            self.frames.append((data, bool(out["o__good"][end])))
            begin = end
        assert not out["o__valid"][begin:].any()

    @property
    def good(self) -> list[bytes]:
        return [data for data, good in self.frames if good]


@pytest.mark.parametrize("idle", [1, 5, 12])
def test_legal_frames_are_good(compiled: Model, idle: int) -> None:
    rng = random.Random(idle)
    sizes = [*range(40, 70), 200, 1517, 1518, *(rng.randrange(60, 1519) for _ in range(20))]
    contents = [rng.randbytes(size) for size in sizes]
    received = Received(compiled, [on_line(content, idle) for content in contents])
    assert received.frames == [(frame(content), True) for content in contents]


@pytest.mark.parametrize("preamble", [0, 1, 6, 7, 20])
def test_a_preamble_of_any_length_is_accepted(compiled: Model, preamble: int) -> None:
    whole = frame(b"content")
    received = Received(compiled, [Burst(b"\x55" * preamble + b"\xd5" + whole)] * 2)
    assert received.frames == [(whole, True)] * 2


@pytest.mark.parametrize("idle", [1, 2, 3])
@pytest.mark.parametrize("preamble", [0, 1])
def test_gap_and_preamble_have_two_bytes(compiled: Model, idle: int, preamble: int) -> None:
    """A frame that starts earlier is dropped; the one behind it is not."""
    wholes = [frame(bytes([number])) for number in range(3)]
    line = [Burst(b"\x55" * preamble + b"\xd5" + whole, idle) for whole in wholes]
    received = Received(compiled, line)
    early = idle + preamble < 2
    assert received.good == ([wholes[0], wholes[2]] if early else wholes)


CONTENT = bytes(range(100))
BAD: dict[str, list[Burst]] = {
    "runt": [Burst(HEAD + with_fcs(CONTENT[:size])) for size in (0, 1, 10, 59)],
    "giant": [Burst(HEAD + with_fcs(bytes(size))) for size in (1519, 1520, 2044, 2108, 9000)],
    "error": [on_line(CONTENT, errors=[place]) for place in (8, 9, 60, 111)],
    "truncated": [Burst(HEAD + frame(CONTENT)[:-missing]) for missing in (1, 2, 3, 4, 5)],
    "longer": [Burst(HEAD + frame(CONTENT) + more) for more in (b"\0", b"\xff" * 4)],
    "only a start": [Burst(HEAD)],
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_frames_are_not_good(compiled: Model, kind: str) -> None:
    good = on_line(b"good")
    for burst in BAD[kind]:
        received = Received(compiled, [good, burst, good])
        assert [verdict for _, verdict in received.frames] == [True, False, True], len(burst.data)


def test_any_wrong_bit_is_found(compiled: Model) -> None:
    whole = frame(CONTENT)
    bursts = []
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        bursts.append(Burst(HEAD + damaged))
    received = Received(compiled, bursts)
    assert received.good == []
    assert len(received.frames) == len(bursts)


@pytest.mark.parametrize("start", [b"\x55\x54", b"\xd4", b"\0", b"\xff" * 3])
def test_without_a_legal_start_nothing_appears(compiled: Model, start: bytes) -> None:
    received = Received(compiled, [Burst(start + HEAD + frame(CONTENT)), on_line(b"good")])
    assert received.frames == [(frame(b"good"), True)]


def test_an_error_in_the_preamble_drops_the_frame(compiled: Model) -> None:
    received = Received(compiled, [on_line(CONTENT, errors=[3]), on_line(b"good")])
    assert received.frames == [(frame(b"good"), True)]


def test_the_end_of_a_frame_that_had_begun_before_the_reset_is_not_one(compiled: Model) -> None:
    received = Received(compiled, [Burst(HEAD + frame(CONTENT), idle=0), on_line(b"good")])
    assert received.frames == [(frame(b"good"), True)]


def test_random_bytes_are_never_good(compiled: Model) -> None:
    """Half of the bursts start like a frame. After each, a good frame is good."""
    rng = random.Random(1)
    bursts: list[Burst] = []
    for number in range(600):
        data = rng.randbytes(rng.choice([1, 8, 63, 64, 300, 1600]))
        bursts += [Burst(HEAD * (number % 2) + data, rng.randrange(1, 20)), on_line(b"good")]
    received = Received(compiled, bursts)
    assert received.good == [frame(b"good")] * 600
