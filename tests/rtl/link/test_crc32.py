"""The CRC of words is that of zlib, whatever their width."""

import random
import zlib

import numpy as np
import pytest

from bitlane_rtl.link.crc32 import Crc32
from cppsim import Model
from support.ethernet.line import run


@pytest.mark.parametrize("width", [8, 16, 32])
def test_random_words(width: int) -> None:
    """Some cycles have no word, and some words are ignored because the CRC is cleared."""
    rng = random.Random(width)
    cycles = 500
    words = [rng.getrandbits(width) for _ in range(cycles)]
    valid = [rng.random() < 0.7 for _ in range(cycles)]
    clear = [rng.random() < 0.05 for _ in range(cycles)]
    found = run(
        Model(Crc32(width)),
        {
            "data": np.array(words, np.uint32),
            "valid": np.array(valid, np.uint8),
            "clear": np.array(clear, np.uint8),
        },
        ["crc"],
    )["crc"]
    covered, lengths = b"", set()
    for cycle, word in enumerate(words):
        assert int(found[cycle]) == zlib.crc32(covered), f"cycle {cycle}"
        covered += word.to_bytes(width // 8, "little") if valid[cycle] else b""
        covered = b"" if clear[cycle] else covered
        lengths.add(len(covered))
    assert max(lengths) >= 20 * width // 8


def test_a_width_that_is_too_large() -> None:
    with pytest.raises(ValueError, match="width: 33; expected 1 to 32"):
        Crc32(33)
