"""Validate a board's model at its simulated pins, within the process. No tests here."""

from bitlane.errors import BitlaneError
from bitlane.links.serial_link import SerialLink
from bitlane.runtime import Runtime
from bitlane.validate.report import validate
from bitlane.validate.session import Session
from bitlane_boards.board import Board
from bitlane_sim.pins import PinModel, PinSimulation, SimulatedPort

__all__ = ["Recorder", "opened", "validated"]

SILENCE = 0.5
"""Seconds that a board may be silent: simulated ones, in which a sound one is never."""


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


def validated(model: PinModel, board: Board, memory_bytes: int | None = None) -> str:
    """What is wrong with the board; nothing if all of ``bitlane validate --quick`` passes."""
    port = opened(model, board)
    lines: list[str] = []
    try:
        link = SerialLink(port, description=model.description, timeout=SILENCE)
        with link, Runtime(link, timeout=SILENCE) as runtime:
            session = Session(runtime, seed=1, quick=True, memory_bytes=memory_bytes)
            if validate(session, lines.append):
                return ""
    except BitlaneError as error:
        lines.append(str(error))
    finally:
        port.close()
    wrong = [line for line in lines if "pass" not in line.split()[:3]]
    return wrong[0] if wrong else lines[-1]
