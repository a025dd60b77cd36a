"""An ECP5 board, as built, passes validation at its pins and equals its RTL cycle by cycle.

The netlist is the routed one. A board with Ethernet computes over its network instead. A run builds
one board, as placing and routing it takes minutes.
"""

from collections.abc import Callable

import pytest

from bitlane_boards import boards
from bitlane_boards.board import Family
from support.boards.session import (
    NETWORK_BUILT,
    built_boards,
    expect_answers_of_its_rtl,
    expect_computed_over_its_network,
    expect_validated,
)
from support.verdicts import AT_THE_PINS

pytestmark = [pytest.mark.slow, AT_THE_PINS]


@pytest.mark.rotates(1)
@pytest.mark.parametrize("name", [*built_boards(Family.ECP5), NETWORK_BUILT])
def test_board_is_its_rtl(name: str, record_property: Callable[[str, object], None]) -> None:
    if boards()[name].ethernet:
        expect_computed_over_its_network(name)
    else:
        expect_validated(name, record_property)
        expect_answers_of_its_rtl(name)
