"""On a line that drops, doubles, inserts and flips bytes, a result is right or an error in time.

The board model fails the test if a write is executed twice, if a repeated read returns other data,
or if more bytes are in flight than the board buffers.
"""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from bitlane.errors import LinkError
from bitlane.links import serial_link
from bitlane_rtl.abi import CONTROL_BASE
from support.board.line import ModelPort, Noise, connected
from support.board.model import BoardModel, MemoryDevice

BASE = 0x1000
RATES = [1 / 2000, 1 / 500, 1 / 200]
DIRECTIONS = ["up", "down", "both"]
TIMEOUT = 10.0


@pytest.fixture(autouse=True)
def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serial_link, "randbits", Random(1).getrandbits)


def noisy_port(board: BoardModel, rate: float, direction: str, seed: int) -> ModelPort:
    return ModelPort(
        board,
        up=Noise(rate if direction != "down" else 0, seed),
        down=Noise(rate if direction != "up" else 0, seed + 1000),
    )


class Job:
    """Random accesses with expected results, because the memory retains every write."""

    def __init__(self, board: BoardModel, seed: int) -> None:
        device = board.device
        assert isinstance(device, MemoryDevice)
        self.device = device
        self.board = board
        self.random = Random(seed)
        self.counter = 0

    def run(self, port: ModelPort, steps: int) -> None:
        """Run ``steps`` accesses. Raises the link's ``LinkError``; a mismatch fails the test."""
        with connected(port, TIMEOUT) as link:
            for _ in range(steps):
                size = self.random.choice([1, 4, 60, 512, 3000])
                first, second = self._apart(size)
                data = self.random.randbytes(size)
                before = bytes(self.device.memory[second - BASE :][:size])
                self.device.written.clear()
                kind = self.random.randrange(4)
                if kind == 0:
                    link.write(first, data)
                elif kind == 1:
                    data = bytes(self.device.memory[first - BASE :][:size])
                    assert link.read(first, size).tobytes() == data
                elif kind == 2:
                    (got,) = link.exchange([(first, data)], [(second, size)])
                    assert got.tobytes() == before
                else:
                    self._ring(link.write)
                    data = bytes(self.device.memory[first - BASE :][:size])
                assert bytes(self.device.memory[first - BASE :][:size]) == data
                assert set(self.device.written.values()) <= {1}, "a write was executed twice"

    def _ring(self, write: object) -> None:
        """Write a register that counts its writes."""
        assert callable(write)
        self.counter += 1
        before = len(self.device.window_writes)
        write(CONTROL_BASE + 0x1C, self.counter.to_bytes(4, "little"))
        assert self.device.window_writes[before:] == [(0x1C, self.counter.to_bytes(4, "little"))]

    def _apart(self, size: int) -> tuple[int, int]:
        half = self.device.memory_bytes // 2
        places = [BASE + self.random.randrange(half - size) + half * k for k in (0, 1)]
        self.random.shuffle(places)
        return places[0], places[1]


def frames_of(board: BoardModel) -> int:
    return board.taken + board.repetitions + board.damaged + board.out_of_turn


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("rate", RATES)
def test_noise_costs_time(
    rate: float, direction: str, record_property: Callable[[str, object], None]
) -> None:
    right = failed = frames = hits = 0
    seconds = 0.0
    for seed in range(20):
        print(f"rate {rate}, {direction}, seed {seed}")
        board = BoardModel()
        port = noisy_port(board, rate, direction, seed)
        job = Job(board, seed)
        try:
            job.run(port, 8)
            right += 1
        except LinkError as error:
            print(error)
            failed += 1
        job.run(ModelPort(board), 3)
        frames += frames_of(board)
        hits += port.up.hits + port.down.hits
        seconds += port.now
    record_property(
        "report",
        f"serial link, noise 1/{1 / rate:.0f} {direction}: {frames} frames, {hits} bytes hit,"
        f" {right} jobs right, {failed} given up with an error, {seconds:.1f} s simulated",
    )
    assert hits > 10
    # Noise at this rate may cause an error now and then, but most jobs must succeed.
    assert right >= 19


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_byte_in_200_leaves_a_rate_that_is_worth_having(direction: str) -> None:
    size = 32 * 1024
    port = noisy_port(BoardModel(), 1 / 200, direction, 7)
    link = connected(port, TIMEOUT)
    start = port.now
    link.exchange([(BASE, Random(1).randbytes(size))], [(BASE + size, size)])
    # Without noise, 300000 bytes a second are possible in each direction.
    assert 2 * size / (port.now - start) > 15_000


def test_after_noise_the_line_is_used_as_before() -> None:
    port = noisy_port(BoardModel(), 1 / 200, "both", 3)
    link = connected(port, TIMEOUT)
    link.write(BASE, bytes(4096))
    port.up, port.down = Noise(0, 0), Noise(0, 0)
    link.write(BASE, bytes(range(256)) * 64)
    up = port.up_bytes
    link.write(BASE, bytes(range(1, 256)) * 256)
    assert 255 * 256 / (port.up_bytes - up) >= 0.95


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_noise_that_lets_nothing_through_is_an_error_in_time(direction: str) -> None:
    board = BoardModel()
    port = ModelPort(board)
    link = connected(port, 2.0)
    link.write(BASE, b"before")
    if direction != "down":
        port.up = Noise(0.5, 1)
    if direction != "up":
        port.down = Noise(0.5, 2)
    start = port.now
    with pytest.raises(LinkError, match="no answer for 2 s to a WRITE of"):
        link.write(BASE, bytes(100))
    assert port.now - start < 7
    Job(board, 1).run(ModelPort(board), 5)


def every_hit(data: bytes) -> Iterator[bytes]:
    """Return ``data`` with each byte dropped, doubled, made a delimiter, and flipped."""
    for place, byte in enumerate(data):
        for instead in (b"", bytes((byte, byte)), b"\0", bytes((byte ^ 0x10,)), b"\0" + data[:5]):
            yield data[:place] + instead + data[place + 1 :]


class Once:
    """Noise that replaces the ``turn``-th piece of traffic once."""

    def __init__(self, turn: int, variant: int) -> None:
        self.turn, self.variant = turn, variant
        self.hits = 0
        self.exhausted = False

    def __call__(self, data: bytes) -> bytes:
        self.turn -= 1
        if self.turn != -1:
            return data
        self.hits += 1
        for number, damaged in enumerate(every_hit(data)):
            if number == self.variant:
                return damaged
        self.exhausted = True
        return data


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("direction", ["up", "down"])
def test_one_hit_anywhere_in_a_short_job_is_survived(direction: str, turn: int) -> None:
    """Turn 0 is the HELLO, then a write, a doorbell, a read."""
    variant = 0
    while True:
        board = BoardModel()
        device = board.device
        assert isinstance(device, MemoryDevice)
        port = ModelPort(board)
        once = Once(turn, variant)
        setattr(port, direction, once)
        with connected(port) as link:
            link.write(BASE, b"12\x0034")
            link.write(CONTROL_BASE + 0x1C, b"\1\0\0\0")
            got = link.read(BASE, 5).tobytes()
        if once.exhausted:
            break
        assert (once.hits, got) == (1, b"12\x0034"), f"variant {variant}"
        assert device.window_writes == [(0x1C, b"\1\0\0\0")], f"variant {variant}"
        assert device.written == {(BASE, 5): 1}, f"variant {variant}"
        variant += 1
    assert variant > 30
