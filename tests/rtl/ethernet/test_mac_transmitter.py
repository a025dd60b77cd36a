"""The MAC's transmitter makes legal frames of packets, at the rate of the line."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from bitlane_rtl.ethernet.mac_transmitter import MacTransmitter
from cppsim import Model
from support.ethernet.line import Burst, bursts_on, checked, padded


@pytest.fixture(scope="module")
def compiled() -> Model:
    return Model(MacTransmitter())


def words(content: bytes) -> list[int]:
    """Return the packet of a frame: its length and its bytes, in words."""
    data = len(content).to_bytes(2, "big") + content
    data += b"\xaa" * (-len(data) % 4)
    return np.frombuffer(data, "<u4").tolist()


def transmitted(
    model: Model, contents: Sequence[bytes], *, wait: int = 0, pause: int = 0
) -> list[Burst]:
    """Transmit ``contents``, each ``wait`` cycles after the one before, and return the line.

    A word within a packet is valid ``pause`` cycles after the one before is accepted.
    """
    model.reset()
    line: dict[str, list[int]] = {"data": [], "valid": [], "error": []}

    def step() -> None:
        for name, column in line.items():
            column.append(model.get(f"o__{name}"))
        model.step()

    for content in contents:
        for number, word in enumerate(words(content)):
            model.set("i__valid", 0)
            for _ in range(pause if number else wait):
                step()
            model.set("i__payload", word)
            model.set("i__valid", 1)
            while not model.get("i__ready"):
                step()
            step()
    model.set("i__valid", 0)
    for _ in range(100):
        step()
    return bursts_on({name: np.array(column) for name, column in line.items()})


SIZES = [*range(1, 66), 100, 101, 102, 103, 1511, 1512, 1513, 1514]


def test_packets_become_frames_without_idle_time(compiled: Model) -> None:
    rng = random.Random(1)
    contents = [rng.randbytes(size) for size in SIZES]
    bursts = transmitted(compiled, contents)
    assert [checked(burst) for burst in bursts] == [padded(content) for content in contents]
    assert {burst.idle for burst in bursts[1:]} == {12}


@pytest.mark.parametrize("wait", range(1, 30, 4))
def test_a_frame_starts_at_any_time_after_the_gap(compiled: Model, wait: int) -> None:
    contents = [bytes([number]) * 61 for number in range(4)]
    bursts = transmitted(compiled, contents, wait=wait)
    assert [checked(burst) for burst in bursts] == contents
    idle = {burst.idle for burst in bursts[1:]}
    assert min(idle) >= 12
    assert max(idle) <= 12 + wait


def test_latency(compiled: Model) -> None:
    [burst] = transmitted(compiled, [bytes(60)], wait=20)
    assert burst.idle == 20 + 3


def test_a_word_that_is_late_is_an_error(compiled: Model) -> None:
    """The receiver drops the frame, and the next one is whole."""
    late, good = transmitted(compiled, [bytes(100)], pause=9), transmitted(compiled, [b"x" * 80])
    assert late[0].errors
    assert checked(good[0]) == b"x" * 80
