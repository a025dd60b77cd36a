"""Layouts of the native memory port."""

from bitlane_rtl.abi import BEATS_PER_BLOCK
from bitlane_rtl.ports.signatures import request


def test_a_length_has_the_bits_that_a_whole_block_needs_and_no_more() -> None:
    assert 1 << request(16)["length"].width == BEATS_PER_BLOCK
