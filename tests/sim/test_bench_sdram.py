"""Streams reach a share of an SDRAM chip's peak that is exact to the cycle."""

import pytest

from bitlane_rtl.abi import Op
from bitlane_sim.bench.sdram import Transfer, logic, reads

pytestmark = pytest.mark.slow

REFRESH = 18
"""Cycles that a refresh costs a stream, including the activation of a row."""


@pytest.mark.parametrize(("size", "refreshes"), [(1 << 14, 11), (1 << 15, 22), (1 << 16, 43)])
def test_a_stream_reads_a_word_a_cycle_but_for_refreshes(size: int, refreshes: int) -> None:
    words = size // 2
    assert reads(64, size, (0,)) == Transfer(words, words + REFRESH * refreshes + 15)


def test_an_operator_has_more_than_nine_tenths_of_the_peak() -> None:
    for op, streams in ((Op.XOR, 3), (Op.NOT, 2)):
        transfer = logic(64, op, 1 << 16)
        assert transfer.words == streams * (1 << 15)
        assert transfer.efficiency > 0.94
