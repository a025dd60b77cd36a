"""Every iCE40 and Gowin board passes validation at its pins and equals its RTL cycle by cycle.

The netlist of an iCE40 board is read from the bitstream file, that of a Gowin board is synthesised;
`tests/verify/boards/test_builds.py` places and routes it, too.
"""

from collections.abc import Callable

import pytest

from bitlane_boards.board import Family
from support.boards.session import built_boards, expect_answers_of_its_rtl, expect_validated
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, AT_THE_PINS]

BOARDS = [
    *(pytest.param(name, marks=pytest.mark.rotates(1)) for name in built_boards(Family.ICE40)),
    *built_boards(Family.GOWIN),
]


@pytest.mark.parametrize("name", BOARDS)
def test_board_passes_validation(name: str, record_property: Callable[[str, object], None]) -> None:
    expect_validated(name, record_property)


@pytest.mark.parametrize("name", BOARDS)
def test_board_answers_like_its_rtl_in_every_cycle(name: str) -> None:
    expect_answers_of_its_rtl(name)
