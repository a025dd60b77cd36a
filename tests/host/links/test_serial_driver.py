"""The driver and the link on a noisy line: results are right, or an error comes in time.

The board model fails the test if a write is executed twice, if a repeated read returns other data,
or if more bytes are in flight than the board buffers.
"""

from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import pytest

from bitlane import Device, dml
from bitlane.driver.driver import Driver
from bitlane.errors import BitlaneError, LinkError
from bitlane.links import remote_link
from bitlane.links.serial_link import SerialLink
from bitlane_rtl.abi import CONTROL_BASE, Status, register
from support.board.driver import DriverDevice
from support.board.line import ModelPort, Noise, connected
from support.board.model import BoardModel

DOORBELL = CONTROL_BASE + register("DOORBELL").offset


@pytest.fixture(autouse=True)
def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_link, "randbits", Random(1).getrandbits)


def job(device: Device, seed: int) -> None:
    """Operators on arrays of several layouts; the results must be those of NumPy."""
    random = np.random.default_rng(seed)
    a = random.integers(0, 1 << 32, (3, 200), dtype=np.uint32)
    b = random.integers(0, 1 << 32, (200,), dtype=np.uint32)
    np.testing.assert_array_equal(device.bit_xor(a, b), a ^ b)
    np.testing.assert_array_equal(device.bit_and(a[:, ::2], a[:, 1::2]), a[:, ::2] & a[:, 1::2])
    small = random.integers(0, 256, 37, dtype=np.uint8)
    np.testing.assert_array_equal(device.bit_not(small), ~small)
    np.testing.assert_array_equal(device.bit_count(small), np.bitwise_count(small))


def jobs(device: Device) -> None:
    for seed in range(10):
        job(device, seed)


def device_on(port: ModelPort, timeout: float = 10.0) -> Device:
    return Device(Driver(connected(port, timeout)))


def test_jobs_on_a_quiet_line() -> None:
    board = BoardModel(DriverDevice())
    with device_on(ModelPort(board)) as device:
        job(device, 1)
        assert device.description == "model board"
    assert (board.repetitions, board.damaged) == (0, 0)


def test_a_doorbell_too_far_ahead_is_refused_over_a_line_and_the_next_job_works() -> None:
    with device_on(ModelPort(BoardModel(DriverDevice()))) as device:
        job(device, 1)
        driver = device.driver
        driver.clear()
        driver.write_register("DOORBELL", driver.geometry.slots + 1)
        code = register("FAULT")["CODE"].extract(driver.read_register("FAULT"))
        assert (code, driver.read_register("RETIRED")) == (Status.BAD_DOORBELL, 0)
        driver.clear()
        job(device, 2)


def test_a_list_of_dispatches_takes_few_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """50 XORs of 4 KiB on a board of 16 slots: whole rings of commands, each with its doorbell."""
    size, number = 4096, 50
    tensor = dml.BufferTensorDesc(dml.DataType.UINT8, [size])
    board = BoardModel(DriverDevice())
    with device_on(ModelPort(board)) as device, dml.Device(device) as dml_device:
        operator = dml_device.compile_operator(
            dml_device.create_operator(dml.ElementWiseBitXorOperatorDesc(tensor, tensor, tensor))
        )
        recorder, commands = dml_device.create_command_recorder(), dml_device.create_command_list()
        initializer = dml_device.create_operator_initializer([operator])
        recorder.record_dispatch(
            commands, initializer, dml_device.create_binding_table(initializer)
        )
        a, b, *results = (dml_device.create_buffer(size) for _ in range(2 + number))
        first, second = np.random.default_rng(1).integers(0, 256, (2, size), np.uint8)
        a.write(first)
        b.write(second)
        for result in results:
            table = dml_device.create_binding_table(operator)
            table.bind_inputs([dml.BufferBinding(a), dml.BufferBinding(b)])
            table.bind_outputs([dml.BufferBinding(result)])
            recorder.record_dispatch(commands, operator, table)
        trips: list[object] = []
        link = device.driver.link
        assert isinstance(link, SerialLink)
        converse = link._converse
        monkeypatch.setattr(link, "_converse", lambda cuts: trips.append(cuts) or converse(cuts))
        dml_device.execute(commands)
        assert len(trips) <= 8
        for result in results:
            np.testing.assert_array_equal(result.read(), first ^ second)


@pytest.mark.parametrize("rate", [1 / 2000, 1 / 200])
def test_jobs_on_a_noisy_line_are_right_and_ring_each_doorbell_once(
    rate: float, record_property: Callable[[str, object], None]
) -> None:
    quiet = DriverDevice()
    with device_on(ModelPort(BoardModel(quiet))) as device:
        job(device, 1)
    doorbells = [x for x in quiet.writes if x[0] == DOORBELL]
    hits = repeated = 0
    for seed in range(6):
        print(f"rate {rate}, seed {seed}")
        behind = DriverDevice()
        board = BoardModel(behind)
        port = ModelPort(board, up=Noise(rate, seed), down=Noise(rate, seed + 1000))
        with device_on(port) as device:
            job(device, 1)
        assert [x for x in behind.writes if x[0] == DOORBELL] == doorbells
        hits += port.up.hits + port.down.hits
        repeated += board.repetitions
    record_property(
        "report", f"driver over noise 1/{1 / rate:.0f}: {hits} bytes hit, {repeated} repetitions"
    )
    assert hits > 10


@pytest.mark.parametrize("after", [40, 400, 3000, 5000, 6500])
def test_after_a_pulled_cable_the_next_job_works(after: int) -> None:
    board = BoardModel(DriverDevice())
    port = ModelPort(board)
    device = device_on(port)
    port.break_after = port.up_bytes + after
    with pytest.raises(LinkError, match="the port failed"):
        jobs(device)
    device.close()
    with device_on(ModelPort(board)) as device:
        job(device, 2)


def test_after_a_noise_that_lets_nothing_through_the_next_job_works() -> None:
    board = BoardModel(DriverDevice())
    port = ModelPort(board)
    device = device_on(port, 1.0)
    job(device, 1)
    port.up, port.down = Noise(0.3, 1), Noise(0.3, 2)
    with pytest.raises(BitlaneError, match="model board: no answer for 1 s"):
        jobs(device)
    device.close()
    with device_on(ModelPort(board)) as device:
        job(device, 2)


def test_after_an_interrupt_the_next_job_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for countdown in range(1, 60, 7):
        board = BoardModel(DriverDevice())
        port = ModelPort(board)
        device = device_on(port)
        left = countdown
        read = port.read

        def interrupted(size: int, /) -> bytes:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            return read(size)  # noqa: B023, called before the loop goes on

        monkeypatch.setattr(port, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            jobs(device)
        device.close()
        port.closed = False
        with device_on(port) as device:
            job(device, 2)


# --- the link by itself -----------------------------------------------------------------------


BASE = 0x1000
RATES = [1 / 2000, 1 / 500, 1 / 200]
DIRECTIONS = ["up", "down", "both"]
TIMEOUT = 10.0


def noisy_port(board: BoardModel, rate: float, direction: str, seed: int) -> ModelPort:
    return ModelPort(
        board,
        up=Noise(rate if direction != "down" else 0, seed),
        down=Noise(rate if direction != "up" else 0, seed + 1000),
    )


class Job:
    """Random accesses with expected results, because the memory retains every write."""

    def __init__(self, board: BoardModel, seed: int) -> None:
        device = board.memory_device
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
        device = board.memory_device
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
