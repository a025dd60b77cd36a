"""The boards whose times the device ``numpy?board=NAME`` predicts."""

from collections.abc import Mapping

from bitlane_sim.numpy_device.board import PredictedBoard
from bitlane_sim.numpy_device.cycles import SDRAM_SHARE, Memory
from bitlane_sim.numpy_device.line_time import gigabit_line, serial_line

from . import boards
from .board import Board


def predicted_boards() -> Mapping[str, PredictedBoard]:
    """Return all boards by name."""
    return {name: _predicted(board) for name, board in boards().items()}


def _predicted(board: Board) -> PredictedBoard:
    line = gigabit_line() if board.ethernet else serial_line(board.baud)
    memory = Memory(shared=_beat_cycles(board))
    return PredictedBoard(board.name, board.configuration, board.clock_hz, line, memory)


def _beat_cycles(board: Board) -> float:
    """Return the cycles that a beat of any stream takes in the memory of ``board``."""
    if board.sdram is not None:
        return board.configuration.data_width / board.sdram.width / SDRAM_SHARE
    return 1 / board.banks
