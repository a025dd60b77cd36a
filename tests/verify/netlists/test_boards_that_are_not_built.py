"""The RTL of every board whose netlist is not compared passes validation at its pins."""

from dataclasses import replace

import pytest

from bitlane_boards import boards
from bitlane_boards.readback import rtl_model
from support.boards.session import BUILT, SLOW, validated
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, AT_THE_PINS]


VALIDATED_ELSEWHERE = "colorlight-i5-uart"
"""`tests/boards/test_sdram.py` validates this one."""


@pytest.mark.rotates(1)
@pytest.mark.parametrize("name", sorted(set(boards()) - set(BUILT) - {VALIDATED_ELSEWHERE}))
def test_board_passes_validation(name: str) -> None:
    board = boards()[name]
    if name in SLOW:
        board = replace(board, baud=board.clock_hz // 8)  # a faster line than the bridge accepts
    if board.configuration.search:  # compiling all of its equal units takes minutes
        search = replace(board.configuration.search, units=4)
        board = replace(board, configuration=replace(board.configuration, search=search))
    assert validated(rtl_model(board), board, 1024) == ""
