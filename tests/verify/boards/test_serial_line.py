"""Boards at their pins on a serial line: it may fail, stream at its rate, and carry a search.

The driver copes with a noisy line and a pulled cable. Every job is right or ends with a clear error
within its deadline; the next job on the same board is right. A tensor larger than a board's memory
takes the time of the line. A search is over a pseudo-terminal, in a database that lies in SDRAM.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

import bitlane
from bitlane import Device
from bitlane.driver import Driver
from bitlane.errors import BitlaneError
from bitlane.links import SerialLink, remote_link
from bitlane_boards import boards
from bitlane_boards.pins import PinSimulation, PtyServer, SimulatedPort
from bitlane_boards.readback import rtl_model
from support.board.line import Noise
from support.boards.session import SILENCE, connect, opened
from support.sim.answerer import serving
from support.verdicts import AT_THE_PINS

pytestmark = pytest.mark.slow

ON_A_LINE = pytest.mark.judges(*AT_THE_PINS.args, "bitlane_sim.device")

BOARD = boards()["hx8k"]
PATIENCE = 0.25
"""Simulated seconds until the link gives up, long enough for many repetitions."""

RATES = [1 / 500, 1 / 200]
DIRECTIONS = ["up", "down", "both"]
SEEDS = range(3)


class FaultyPort(SimulatedPort):
    """A port that damages bytes, or is disconnected after a number of sent bytes."""

    up = Noise(0, 0)
    down = Noise(0, 0)
    sent = 0
    pulled_after: int | None = None

    def write(self, data: bytes | bytearray | memoryview) -> int:
        self.sent += len(data)
        if self.pulled_after is not None and self.sent > self.pulled_after:
            super().write(bytes(data)[: self.pulled_after - self.sent])
            raise OSError(5, "Input/output error")
        super().write(self.up(bytes(data)))
        return len(data)

    def read(self, size: int = 1) -> bytes:
        if self.pulled_after is not None and self.sent > self.pulled_after:
            raise OSError(5, "Input/output error")
        return self.down(super().read(size))

    def close(self) -> None:
        """Do nothing: the next job uses the board again."""

    def mend(self) -> None:
        self.up = self.down = Noise(0, 0)
        self.pulled_after = None


@pytest.fixture(scope="module")
def port() -> Iterator[FaultyPort]:
    simulation = PinSimulation(rtl_model(BOARD), BOARD.clock_hz / BOARD.baud)
    simulation.run(round(100e-6 * BOARD.clock_hz))
    yield FaultyPort(simulation, BOARD.clock_hz)
    simulation.close()


@pytest.fixture(autouse=True)
def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_link, "randbits", Random(1).getrandbits)


def job(port: FaultyPort, seed: int) -> None:
    """Run a job of two operators. Raises ``BitlaneError``; a wrong bit fails the test."""
    random = np.random.default_rng(seed)
    a, b = (random.integers(0, 256, 700, np.uint8) for _ in range(2))
    link = SerialLink(port, timeout=PATIENCE, clock=lambda: port.seconds)
    with link, Driver(link, timeout=PATIENCE) as driver, Device(driver) as device:
        assert (device.bit_xor(a[1:], b[:-1]) == a[1:] ^ b[:-1]).all()
        assert (device.bit_count(a) == np.bitwise_count(a)).all()


def attempt(port: FaultyPort, seed: int) -> str:
    """Run a job within its deadline; return its error, or an empty string if it was right."""
    started = port.seconds
    try:
        job(port, seed)
    except BitlaneError as error:
        return str(error)
    finally:
        assert port.seconds - started < 20 * PATIENCE
    return ""


@pytest.mark.rotates(2)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("rate", RATES)
@ON_A_LINE
def test_noise(
    port: FaultyPort, rate: float, direction: str, record_property: Callable[[str, object], None]
) -> None:
    right = hits = 0
    for seed in SEEDS:
        port.up = Noise(rate if direction != "down" else 0, seed)
        port.down = Noise(rate if direction != "up" else 0, seed + 1000)
        right += not attempt(port, seed)
        hits += port.up.hits + port.down.hits
        port.mend()
        assert attempt(port, seed + 1) == "", "the next job on the same board"
    assert hits
    if rate <= 1 / 500:
        assert right >= 2, "repetitions get past so few hits"
    text = f"1 in {1 / rate:.0f} {direction}: {right} of {len(SEEDS)} jobs right, {hits} bytes hit"
    record_property("report", text)


@pytest.mark.parametrize("after", [5, 100, 1000, 1900])
@ON_A_LINE
def test_a_cable_that_is_pulled(port: FaultyPort, after: int) -> None:
    port.sent, port.pulled_after = 0, after
    assert "Input/output error" in attempt(port, after)
    port.mend()
    assert attempt(port, after) == "", "the next job on the same board"


ICEBREAKER = boards()["icebreaker"]
SIZE = 1 << 19


@ON_A_LINE
def test_a_unary_operator_takes_the_time_of_the_line(
    record_property: Callable[[str, object], None],
) -> None:
    assert 4 * ICEBREAKER.configuration.memory_bytes <= SIZE
    x = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
    port = opened(rtl_model(ICEBREAKER), ICEBREAKER)
    link = connect(port, ICEBREAKER.name)
    with link, Driver(link, timeout=SILENCE) as driver, Device(driver) as device:
        started = port.seconds
        y = device.bit_not(x)
        took = port.seconds - started
    port.close()
    assert (y == ~x).all()
    line = SIZE * 10 / ICEBREAKER.baud
    record_property("report", f"{SIZE} bytes NOT: {took / line:.3f} of the line's time")
    assert took <= 1.1 * line


FAST = replace(boards()["ulx3s-sdram"], baud=12_500_000)
"""With a line of 8 clocks a bit, which the board's bridge would not take: a quarter of the time."""


@pytest.mark.parametrize("rows", [1 << 10, pytest.param(1 << 13, marks=pytest.mark.deep)])
def test_the_nearest_rows_are_found(rows: int) -> None:
    random = np.random.default_rng(1)
    database = random.integers(0, 256, (rows, 64), np.uint8)
    queries = np.concatenate([random.integers(0, 256, (1, 64), np.uint8), database[-1:]])
    distances = np.bitwise_count(queries[:, None] ^ database).sum(-1, dtype=np.int32)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]

    simulation = PinSimulation(rtl_model(FAST), FAST.clock_hz / FAST.baud)
    server = PtyServer(simulation, FAST.clock_hz)
    server.warm_up()
    with serving(server), bitlane.open(f"serial:{server.name}?baud={FAST.baud}") as device:
        index = bitlane.BinaryIndex(device, 512)
        index.add(database)
        found = index.search(queries, 10)
    server.close()
    simulation.close()
    assert (found[1] == nearest).all()
    assert (found[0] == np.take_along_axis(distances, nearest, 1)).all()
