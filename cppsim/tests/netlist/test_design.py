"""Wide numbers are words of 64 bits, the least significant first; messages show them."""

import pytest

from cppsim.netlist.design import FormattedValue, formatted, from_words, to_words, word_count

WORDS = [
    (1, 1, 1, [1]),
    ((1 << 64) - 1, 64, 1, [(1 << 64) - 1]),
    (1 << 64, 65, 2, [0, 1]),
    (5 << 128 | 7, 129, 3, [7, 0, 5]),
]


@pytest.mark.parametrize(("value", "width", "count", "words"), WORDS)
def test_a_number_is_words_of_64_bits(value: int, width: int, count: int, words: list[int]) -> None:
    assert word_count(width) == count
    assert to_words(value, count) == words
    assert from_words(words) == value


def test_a_negative_number_has_the_words_of_its_complement() -> None:
    assert to_words(-1, 2) == [(1 << 64) - 1] * 2
    assert to_words(-(1 << 64), 2) == [0, (1 << 64) - 1]


@pytest.mark.parametrize(
    ("width", "value", "signed", "unsigned"),
    [(4, 7, "7", "7"), (4, 8, "-8", "8"), (4, 15, "-1", "15"), (1, 1, "-1", "1"), (0, 0, "0", "0")],
)
def test_a_message_shows_a_value_with_its_sign(
    width: int, value: int, signed: str, unsigned: str
) -> None:
    message = (
        "a ",
        FormattedValue(width, True, "d"),
        ", b ",
        FormattedValue(width, False, ">3d"),
    )
    assert formatted(message, [value, value]) == f"a {signed}, b {unsigned:>3}"
