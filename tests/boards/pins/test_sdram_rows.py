"""Streams reach a share of an SDRAM chip's peak that is exact to the cycle."""

import pytest

from bitlane_boards.pins.sdram_rows import Transfer, logic, reads
from bitlane_rtl.abi import Op
from bitlane_rtl.bus.sdram.part import AS4C16M16SA_7, EM638325_6H, SdramPart

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

REFRESH = 18
"""Cycles that a refresh costs a stream, including the activation of a row."""


@pytest.mark.parametrize(("size", "refreshes"), [(1 << 14, 11), (1 << 15, 22), (1 << 16, 43)])
def test_a_stream_reads_a_word_a_cycle_but_for_refreshes(size: int, refreshes: int) -> None:
    words = size // 2
    assert reads(64, size, (0,)) == Transfer(words, words + REFRESH * refreshes + 15)


@pytest.mark.parametrize(
    ("width", "part", "share"),
    [(64, AS4C16M16SA_7, 0.94), (64, EM638325_6H, 0.93), (32, EM638325_6H, 0.83)],
    ids=["with masks", "without masks", "a beat a word"],
)
@pytest.mark.parametrize(("op", "streams"), [(Op.XOR, 3), (Op.NOT, 2)], ids=["XOR", "NOT"])
def test_an_operator_transfers_its_words_once_and_has_most_of_the_peak(
    op: Op, streams: int, width: int, part: SdramPart, share: float
) -> None:
    transfer = logic(width, op, 1 << 16, part)
    assert transfer.words == streams * (1 << 19) // part.width
    assert transfer.efficiency > share
