"""The boards whose times the device ``numpy?board=NAME`` predicts."""

from collections.abc import Mapping

from bitlane_sim.numpy_device import Memory, OneRam, RamBanks, SdramRows, gigabit_line, serial_line
from bitlane_sim.numpy_device.board import PredictedBoard

from . import boards
from .board import Board, MemoryKind


def predicted_boards() -> Mapping[str, PredictedBoard]:
    """Return all boards by name."""
    return {name: _predicted(board) for name, board in boards().items()}


def _predicted(board: Board) -> PredictedBoard:
    line = gigabit_line() if board.ethernet else serial_line(board.baud)
    memory = _memory(board)
    return PredictedBoard(board.name, board.configuration, board.clock_hz, line, memory)


def _memory(board: Board) -> Memory:
    if board.sdram is not None:
        # The bridge of every board shares the chip's ports.
        return SdramRows(part=board.sdram, clock_hz=board.clock_hz, shared=True)
    return RamBanks(banks=board.banks) if board.memory is MemoryKind.BANKS else OneRam()
