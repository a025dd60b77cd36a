"""The driver through the serial link: jobs on a noisy line, and the next job after a failed one."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from bitlane import dml
from bitlane.device import Device
from bitlane.driver.driver import Driver
from bitlane.errors import BitlaneError, LinkError
from bitlane.links import serial_link
from bitlane.links.serial_link import SerialLink
from bitlane_rtl.abi import CONTROL_BASE, Status, register
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
    with device_on(ModelPort(board)) as device, dml.Device(device) as face:
        operator = face.compile_operator(
            face.create_operator(dml.ElementWiseBitXorOperatorDesc(tensor, tensor, tensor))
        )
        recorder, commands = face.create_command_recorder(), face.create_command_list()
        initializer = face.create_operator_initializer([operator])
        recorder.record_dispatch(commands, initializer, face.create_binding_table(initializer))
        a, b, *results = (face.create_buffer(size) for _ in range(2 + number))
        first, second = np.random.default_rng(1).integers(0, 256, (2, size), np.uint8)
        a.write(first)
        b.write(second)
        for result in results:
            table = face.create_binding_table(operator)
            table.bind_inputs([dml.BufferBinding(a), dml.BufferBinding(b)])
            table.bind_outputs([dml.BufferBinding(result)])
            recorder.record_dispatch(commands, operator, table)
        trips: list[object] = []
        link = device.driver.link
        assert isinstance(link, SerialLink)
        converse = link._converse
        monkeypatch.setattr(link, "_converse", lambda cuts: trips.append(cuts) or converse(cuts))
        face.execute(commands)
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
