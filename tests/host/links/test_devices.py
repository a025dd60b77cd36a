"""The driver over each line, quiet or with faults: NumPy's results, and each doorbell once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from bitlane import Device, dml
from bitlane.driver import Driver
from bitlane.errors import LinkError
from bitlane_rtl.abi import CONTROL_BASE, Status, register
from support.board.line import DriverDevice, ModelLine, ModelPort, ModelSocket, Noise
from support.board.model import BoardModel
from support.host.network import Cable, ServedRules
from support.host.transfers import Make

DOORBELL = CONTROL_BASE + register("DOORBELL").offset

BOARDS: dict[str, Callable[..., ModelLine]] = {
    "serial": lambda **options: ModelPort(BoardModel(DriverDevice()), **options),
    "network": lambda **options: ModelSocket(ServedRules(DriverDevice()), **options),
}
"""Lines to a board with registers, ring and bit operators."""


@pytest.fixture(params=BOARDS.values(), ids=[*BOARDS])
def line(request: pytest.FixtureRequest) -> ModelLine:
    made: ModelLine = request.param()
    return made


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


def device_on(line: ModelLine) -> Device:
    return Device(Driver(line.link()))


def test_jobs_on_a_quiet_line(line: ModelLine) -> None:
    with device_on(line) as device:
        job(device, 1)
        assert device.description == "model board"
    assert line.board.watch.repetitions == 0


def test_a_doorbell_too_far_ahead_is_refused_and_the_next_job_works(line: ModelLine) -> None:
    with device_on(line) as device:
        job(device, 1)
        driver = device.driver
        driver.clear()
        driver.write_register("DOORBELL", driver.geometry.slots + 1)
        code = register("FAULT")["CODE"].extract(driver.read_register("FAULT"))
        assert (code, driver.read_register("RETIRED")) == (Status.BAD_DOORBELL, 0)
        driver.clear()
        job(device, 2)


def test_a_list_of_dispatches_takes_few_round_trips(
    line: ModelLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 XORs of 4 KiB on a board of 16 slots: whole rings of commands, each with its doorbell."""
    size, number = 4096, 50
    tensor = dml.BufferTensorDesc(dml.DataType.UINT8, [size])
    with device_on(line) as device, dml.Device(device) as dml_device:
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
        link: Any = device.driver.link
        exchange = link.exchange
        monkeypatch.setattr(link, "exchange", lambda *each: trips.append(each) or exchange(*each))
        dml_device.execute(commands)
        assert 0 < len(trips) <= 8
        for result in results:
            np.testing.assert_array_equal(result.read(), first ^ second)


@pytest.mark.parametrize(
    ("name", "noise"),
    [
        ("serial", partial(Noise, 1 / 2000)),
        ("serial", partial(Noise, 1 / 200)),
        ("network", lambda seed: Cable(loss=0.05, damage=0.05, seed=seed)),
    ],
)
def test_jobs_on_a_noisy_line_are_right_and_ring_each_doorbell_once(
    name: str, noise: Callable[[int], Any], record_property: Callable[[str, object], None]
) -> None:
    make: Make = BOARDS[name]
    quiet = make()
    with device_on(quiet) as device:
        job(device, 1)
    doorbells = [x for x in quiet.board.device.writes if x[0] == DOORBELL]
    hits = repeated = 0
    for seed in range(6):
        print(f"{name}, seed {seed}")
        line = make(up=noise(seed), down=noise(seed + 1000))
        with device_on(line) as device:
            job(device, 1)
        assert [x for x in line.board.device.writes if x[0] == DOORBELL] == doorbells
        hits += line.up.hits + line.down.hits
        repeated += line.board.watch.repetitions
    record_property("report", f"driver over {name}: {hits} hits, {repeated} repetitions")
    assert hits > 10


@pytest.mark.parametrize("after", [40, 400, 3000, 5000, 6500])
def test_after_a_pulled_cable_the_next_job_works(line: ModelLine, after: int) -> None:
    device = device_on(line)
    line.break_after = line.up_bytes + after
    with pytest.raises(LinkError, match=r"the (port|network) failed"):
        jobs(device)
    device.close()
    with device_on(line.again(10)) as other:
        job(other, 2)


@pytest.mark.parametrize("countdown", range(1, 60, 7))
def test_after_an_interrupt_the_next_job_works(line: ModelLine, countdown: int) -> None:
    device = device_on(line)
    line.countdown = countdown
    with pytest.raises(KeyboardInterrupt):
        jobs(device)
    device.close()
    line.closed = False
    with device_on(line) as other:
        job(other, 2)
