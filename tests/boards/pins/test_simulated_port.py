"""Pins as a port: like pyserial's, with time that passes only while somebody waits."""

import pytest

from bitlane_boards.pins import PinSimulation, SimulatedPort
from support.sim.answerer import Answerer, answers

DIVIDER = 8
CLOCK_HZ = 8_000_000


@pytest.fixture
def port() -> SimulatedPort:
    return SimulatedPort(PinSimulation(Answerer(DIVIDER), DIVIDER), CLOCK_HZ)


def test_read_gives_what_there_is_and_waits_for_one_byte(port: SimulatedPort) -> None:
    assert port.write(b"abcdef") == 6
    assert port.simulation.cycle == 0
    first = port.read(100)
    assert first == bytes(answers(b"a"))
    port.simulation.run(1000)
    assert port.in_waiting == 5
    assert first + port.read(2) + port.read(100) == bytes(answers(b"abcdef"))
    assert port.in_waiting == 0


def test_timeout_is_simulated_time(port: SimulatedPort) -> None:
    port.timeout = 0.001
    assert port.read(1) == b""
    assert port.simulation.cycle == 8000
    port.timeout = 0
    assert port.read(1) == b""
    assert port.simulation.cycle == 8000
    assert port.seconds == pytest.approx(0.001)


def test_flush_lets_everything_go_out(port: SimulatedPort) -> None:
    port.write(bytes(20))
    assert port.out_waiting == 20
    port.flush()
    assert port.out_waiting == 0
    port.reset_input_buffer()
    assert port.in_waiting == 0


def test_a_closed_port_is_told(port: SimulatedPort) -> None:
    port.close()
    port.close()
    assert not port.is_open
    for use in (port.read, port.flush, lambda: port.write(b"x"), lambda: port.in_waiting):
        with pytest.raises(OSError, match="closed"):
            use()
