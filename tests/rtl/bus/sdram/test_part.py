"""The geometry of a chip's memory, which the circuit reports in GEOMETRY, follows from its size."""

from dataclasses import replace

import pytest

from bitlane_rtl.abi import register
from bitlane_rtl.abi.rows import Rows
from bitlane_rtl.bus.sdram.part import AS4C16M16SA_7
from bitlane_rtl.capabilities import geometry
from bitlane_rtl.configuration import Configuration


def test_geometry_reports_the_rows_of_the_chip() -> None:
    assert AS4C16M16SA_7.rows == Rows(size_log2=12, banks_log2=2, word_bytes_log2=1)
    word = geometry(Configuration(rows=AS4C16M16SA_7.rows))
    fields = ("ROWS_LOG2", "BANKS_LOG2", "WORD_BYTES_LOG2")
    assert [register("GEOMETRY")[name].extract(word) for name in fields] == [12, 2, 1]


@pytest.mark.parametrize("width", [8, 16, 32])
def test_rows_of_one_number_and_words_have_all_bytes_of_the_chip(width: int) -> None:
    part = replace(AS4C16M16SA_7, width=width)
    assert 8 << part.rows.word_bytes_log2 == width
    assert part.size == 1 << part.rows.size_log2 + part.row_bits
