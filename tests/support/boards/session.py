"""Validate a board's model at its simulated pins, within the process. No tests here."""

import re

from bitlane.driver.driver import Driver
from bitlane.errors import BitlaneError
from bitlane.links.serial_link import SerialLink
from bitlane.validate.report import validate
from bitlane.validate.session import Session
from bitlane_boards.board import Board
from bitlane_sim.pins import PinModel, PinSimulation, SimulatedPort

SILENCE = 0.05
"""Simulated seconds that a board may be silent; a sound one needs less than a tenth of them."""


class Recorder(SimulatedPort):
    """A port that records the bytes written to it."""

    writes: list[bytes]

    def write(self, data: bytes | bytearray | memoryview) -> int:
        self.__dict__.setdefault("writes", []).append(bytes(data))
        return super().write(data)


def opened(model: PinModel, board: Board) -> Recorder:
    """Return the board's port, after power-on and reset."""
    simulation = PinSimulation(model, board.clock_hz / board.baud)
    simulation.run(round(100e-6 * board.clock_hz))
    return Recorder(simulation, board.clock_hz)


def connect(port: SimulatedPort, name: str) -> SerialLink:
    """Return a link with deadlines in simulated time, which a slow simulation does not miss."""
    return SerialLink(port, description=name, timeout=SILENCE, clock=lambda: port.seconds)


class _Failed(Exception):
    """Error for a failed step, which ends the validation."""


def validated(model: PinModel, board: Board, memory_bytes: int | None = None) -> str:
    """Return the first failure of ``bitlane validate --quick`` on the board, or ""."""

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
