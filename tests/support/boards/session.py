"""Validate a board's model at its simulated pins, within the process. No tests here."""

import re

from bitlane.driver.driver import Driver
from bitlane.errors import BitlaneError
from bitlane.links.serial_link import SerialLink
from bitlane.validate.report import validate
from bitlane.validate.session import Session
from bitlane_boards.board import Board
from bitlane_sim.pins import PinModel, PinSimulation, SimulatedPort

__all__ = ["SILENCE", "Recorder", "connect", "opened", "validated"]

SILENCE = 0.05
"""Simulated seconds that a board may be silent; a sound one never is for a tenth of them."""


class Recorder(SimulatedPort):
    """A port that keeps what is written to it."""

    writes: list[bytes]

    def write(self, data: bytes | bytearray | memoryview) -> int:
        self.__dict__.setdefault("writes", []).append(bytes(data))
        return super().write(data)


def opened(model: PinModel, board: Board) -> Recorder:
    """The board's port, after power-on and its reset."""
    simulation = PinSimulation(model, board.clock_hz / board.baud)
    simulation.run(round(100e-6 * board.clock_hz))
    return Recorder(simulation, board.clock_hz)


def connect(port: SimulatedPort, name: str) -> SerialLink:
    """A link whose deadlines are in simulated time, however slow the simulation is."""
    return SerialLink(port, description=name, timeout=SILENCE, clock=lambda: port.seconds)


class _Failed(Exception):
    """A step of the validation failed; one is enough."""


def validated(model: PinModel, board: Board, memory_bytes: int | None = None) -> str:
    """The first thing wrong with the board; nothing if ``bitlane validate --quick`` passes."""

    def expect_pass(line: str) -> None:
        if re.search(r"\bFAIL\b|^Stopped", line):
            raise _Failed(line)

    port = opened(model, board)
    try:
        with connect(port, board.name) as link, Driver(link, timeout=SILENCE) as driver:
            session = Session(driver, seed=1, quick=True, memory_bytes=memory_bytes)
            assert validate(session, expect_pass)
    except (BitlaneError, _Failed) as error:
        return str(error)
    finally:
        port.close()
    return ""
