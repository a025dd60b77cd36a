"""Whole builds of boards, kept by all that they depend on, because they take minutes. No tests."""

import hashlib
from importlib.metadata import version
from pathlib import Path

import bitlane_boards
import bitlane_rtl
from bitlane_boards import boards
from bitlane_boards.board import Board, Family
from bitlane_boards.flow.build import build, tools_of
from bitlane_boards.readback.netlist import bitstream_model, netlist_model
from bitlane_sim.cache import CACHE
from bitlane_sim.pins import PinModel

__all__ = ["built", "readback"]


def built(board: Board) -> Path:
    """The folder of the board's build, with seed 1."""
    digest = hashlib.sha256(board.name.encode())
    for package in (bitlane_rtl, bitlane_boards):
        for path in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
            # These do not change what is built.
            if path.parent.name not in ("area", "command_line", "readback"):
                digest.update(path.read_bytes())
    for name in ("amaranth", "amaranth-boards", *(tool.package for tool in tools_of(board))):
        digest.update(version(name).encode())

    def fill(folder: Path) -> None:
        build(board, folder, lambda _: None)

    return CACHE.cached("board-builds", digest.hexdigest(), fill)


def readback(name: str) -> PinModel:
    """What can be read back of the board's build: its bitstream's gates, or its netlist's."""
    board = boards()[name]
    folder = built(board)
    match board.family:
        case Family.ICE40:
            return bitstream_model(board, folder / f"{name}.bin")
        case Family.ECP5:
            return netlist_model(board, folder / "top.routed.json")
        case Family.GOWIN:
            return netlist_model(board, folder / "top.json")
