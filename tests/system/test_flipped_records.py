"""A record with any one bit flipped in the ring is refused with a code, and touches nothing."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane.driver.commands import encode
from bitlane.lowering import lower as lowering
from bitlane.lowering.strided import Streams, View
from bitlane_rtl.abi import CONTROL_BASE, RING_OFFSET, Op, Status, register
from support.system.devices import SIMULATED, link_of, noise, opened, simulator_of

pytestmark = pytest.mark.slow

SIZE = 4096

FAULT = register("FAULT")

JOBS: dict[str, tuple[Op, tuple[int, ...], View, View | None, View]] = {
    "dense": (Op.XOR, (50,), View(3, (1,), 1), View(1030, (1,), 1), View(2099, (1,), 1)),
    "without B": (Op.NOT, (100,), View(64, (1,), 1), None, View(2048, (1,), 1)),
    "rows, gathered and scattered": (
        Op.SHIFT_LEFT,
        (3, 5, 7),
        View(0, (280, 56, 8), 4),
        View(1024, (0, 4, 0), 4),
        View(2048, (4, 12, 60), 4),
    ),
}


@pytest.fixture(scope="module", params=SIMULATED)
def device(request: pytest.FixtureRequest) -> Iterator[bitlane.Device]:
    with opened(request.param) as device:
        yield device


def record(device: bitlane.Device, name: str) -> NDArray[np.uint32]:
    op, shape, a, b, y = JOBS[name]
    geometry = device.driver.geometry
    commands = list(
        lowering.lower(op, shape, Streams(a, b, y), geometry.abilities, geometry.memory)
    )
    assert len(commands) == 1
    return encode(commands[0])


def submit(device: bitlane.Device, words: NDArray[np.uint32]) -> int:
    """Put a record into the first slot of the ring and ring; the code of the fault, 0 for none."""
    link_of(device).write(CONTROL_BASE + RING_OFFSET, words)
    device.driver.write_register("DOORBELL", 1)
    simulator_of(device).step(400)
    code = FAULT["CODE"].extract(device.driver.read_register("FAULT"))
    status = device.driver.read_register("STATUS")
    assert register("STATUS")["DRAINED"].extract(status) == 1
    device.driver.write_register("CLEAR", 1)
    assert device.driver.read_register("FAULT") == 0
    return code


@pytest.mark.parametrize("name", JOBS)
def test_every_flipped_bit_is_refused(device: bitlane.Device, name: str) -> None:
    words = record(device, name)
    memory = simulator_of(device).memory[:SIZE]
    memory[:] = before = noise(SIZE, 1)
    requests = simulator_of(device).monitor["ar"].count, simulator_of(device).monitor["aw"].count
    for bit in range(32 * words.size):
        replay = f"{device.description}, {name}: bit {bit % 32} of word {bit // 32}"
        flipped = words.copy()
        flipped[bit // 32] ^= np.uint32(1 << bit % 32)
        code = submit(device, flipped)
        # All that is refused is refused before any bus traffic.
        assert Status.OK < code < Status.READ_ERROR, f"{replay}: code {code}"
        assert np.array_equal(memory, before), replay
    monitor = simulator_of(device).monitor
    assert (monitor["ar"].count, monitor["aw"].count) == requests


@pytest.mark.parametrize("name", JOBS)
def test_the_record_as_it_was_is_executed(device: bitlane.Device, name: str) -> None:
    memory = simulator_of(device).memory[:SIZE]
    memory[:] = before = noise(SIZE, 1)
    assert submit(device, record(device, name)) == Status.OK
    assert np.count_nonzero(memory != before) >= 45
