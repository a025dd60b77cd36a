"""Builds of boards, which take minutes, cached by their circuits. No tests here."""

import functools
from pathlib import Path

from bitlane_boards import boards
from bitlane_boards.board import Board, Family
from bitlane_boards.flow.build import Build, build
from bitlane_boards.flow.tools import silent
from bitlane_boards.pins import PinModel
from bitlane_boards.readback import bitstream_model, netlist_model
from bitlane_sim.builds import CACHE


def built(board: Board) -> Path:
    """Return the folder of the board's build with seed 1."""

    def fill(folder: Path) -> None:
        build(board, folder, silent)

    return CACHE.cached("board-builds", Build(board, Path(), silent).identity(seed=1), fill)


def synthesised(board: Board) -> Path:
    """Return the folder of the board's synthesised netlist: a build that is not placed."""

    def fill(folder: Path) -> None:
        Build(board, folder, silent).synthesise()

    return CACHE.cached("board-netlists", Build(board, Path(), silent).identity(seed=1), fill)


def readback(name: str) -> PinModel:
    """Return a model of the gates in the board's bitstream, or in its netlist."""
    board = boards()[name]
    read = bitstream_model if board.family is Family.ICE40 else netlist_model
    return read(board, _gates(name))


@functools.cache
def _gates(name: str) -> Path:
    """Return the file of the board's gates; to find it takes an elaboration."""
    board = boards()[name]
    match board.family:
        case Family.ICE40:
            return built(board) / f"{name}.bin"
        case Family.ECP5:
            return built(board) / "top.routed.json"
        case Family.GOWIN:
            return synthesised(board) / "top.json"
