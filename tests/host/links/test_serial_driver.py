"""The driver through the serial link: jobs on a noisy line, and the next job after a failed one."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from bitlane.device import Device
from bitlane.driver.driver import Driver
from bitlane.errors import BitlaneError, LinkError
from bitlane.links import serial_link
from bitlane_rtl.abi import CONTROL_BASE, register
from support.board.driver import DriverDevice
from support.board.line import ModelPort, Noise, connected
from support.board.model import BoardModel

DOORBELL = CONTROL_BASE + register("DOORBELL").offset


@pytest.fixture(autouse=True)
def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serial_link, "randbits", Random(1).getrandbits)


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
