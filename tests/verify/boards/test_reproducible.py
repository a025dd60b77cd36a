"""The same board, seed and tools give the same bits, wherever and whenever."""

import hashlib
from pathlib import Path

import pytest

from bitlane_boards import boards
from bitlane_boards.flow.build import build
from bitlane_boards.flow.families import FLOWS
from support.boards.board_builds import built

pytestmark = [pytest.mark.slow, pytest.mark.judges("bitlane_boards.flow")]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.rotates(1)
@pytest.mark.parametrize("name", ["hx8k", "tangnano9k"])
def test_another_build_in_another_folder_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    board = boards()[name]
    file = f"{name}.{FLOWS[board.family].bitstream}"
    build(board, tmp_path / "elsewhere", lambda line: None)
    assert digest(tmp_path / "elsewhere" / file) == digest(built(board) / file)


def test_another_seed_gives_other_bits(tmp_path: Path) -> None:
    board = boards()["hx8k"]
    build(board, tmp_path, lambda line: None, seed=2)
    assert digest(tmp_path / "hx8k.bin") != digest(built(board) / "hx8k.bin")
