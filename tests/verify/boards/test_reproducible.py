"""The same board, seed and tools give the same bits, wherever and whenever."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bitlane_boards import boards
from bitlane_boards.board import Board
from bitlane_boards.flow import FLOWS, silent
from bitlane_boards.flow.build import Build, build
from bitlane_rtl.abi import Op
from support.boards.board_builds import built

pytestmark = [pytest.mark.slow, pytest.mark.judges("bitlane_boards.flow")]


def small(name: str) -> Board:
    """Return the board ``name`` with a circuit that is placed and routed in a part of the time."""
    board = boards()[name]
    only = replace(board.configuration, ops=frozenset({Op.NOT}), loops=1)
    return replace(board, configuration=only)


ICE40, GOWIN = small("hx8k"), small("tangnano9k")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.rotates(1)
@pytest.mark.parametrize("board", [ICE40, GOWIN], ids=lambda board: board.name)
def test_another_build_in_another_folder_gives_the_same_bits(board: Board, tmp_path: Path) -> None:
    file = f"{board.name}.{FLOWS[board.family].bitstream}"
    build(board, tmp_path / "elsewhere", silent)
    assert digest(tmp_path / "elsewhere" / file) == digest(built(board) / file)


def test_another_seed_gives_other_bits(tmp_path: Path) -> None:
    """The synthesised circuit is the same: it is placed and routed again."""
    folder = tmp_path / "another"
    shutil.copytree(built(ICE40), folder)
    flow = Build(ICE40, folder, silent)
    assert flow.identity(2) != flow.identity(1)
    flow.pack(2, flow.route(2))
    assert digest(folder / "hx8k.bin") != digest(built(ICE40) / "hx8k.bin")
