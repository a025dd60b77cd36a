"""Cells of Amaranth's netlists as plain ones, and wide numbers as words of 64 bits."""

from types import SimpleNamespace
from typing import Any

import pytest

from cppsim.netlist.cells import CellWriter
from cppsim.netlist.design import (
    FormattedValue,
    NotPlain,
    formatted,
    from_words,
    to_words,
    word_count,
)

VALUE = (2 << 16, 2 << 16 | 1, 2 << 16 | 2)
ENABLE = 3 << 16
PATTERNS = (("1-0", "011"), ("--1",), ())


def cell(kind: str, **fields: Any) -> Any:
    """Return a cell like one of Amaranth's type ``kind``."""
    return type(kind, (SimpleNamespace,), {})(**fields)


def test_one_match_is_several_matches_and_their_priority() -> None:
    several, one = CellWriter(), CellWriter()
    for number, patterns in enumerate(PATTERNS):
        several.take(10 + number, cell("Matches", value=VALUE, patterns=patterns))
    conditions = tuple(several.same[10 + number << 16] for number in range(len(PATTERNS)))
    several.take(20, cell("PriorityMatch", en=ENABLE, inputs=conditions))
    one.take(20, cell("Match", en=ENABLE, value=VALUE, patterns=PATTERNS))
    result = range(20 << 16, (20 << 16) + len(PATTERNS))
    assert one.cells == several.cells
    assert [one.same[bit] for bit in result] == [several.same[bit] for bit in result]
    assert one.same[result[2]] == 0


@pytest.mark.parametrize("sign", ["u", "s"])
@pytest.mark.parametrize(("turned", "straight"), [(">", "<"), (">=", "<=")])
def test_a_greater_operand_is_the_second_of_the_lesser_comparison(
    turned: str, straight: str, sign: str
) -> None:
    first, second = VALUE, tuple(bit + (1 << 16) for bit in VALUE)
    writers = CellWriter(), CellWriter(), CellWriter()
    writers[0].take(20, cell("Operator", operator=sign + turned, inputs=(first, second), width=1))
    writers[1].take(20, cell("Operator", operator=sign + straight, inputs=(second, first), width=1))
    writers[2].take(20, cell("Operator", operator=sign + straight, inputs=(first, second), width=1))
    assert writers[0].cells == writers[1].cells != writers[2].cells


@pytest.mark.parametrize("condition", [0, 1])
def test_a_choice_of_a_constant_condition_is_made_once(condition: int) -> None:
    chosen, writer = tuple(bit + (1 << 16) for bit in VALUE), CellWriter()
    writer.select(VALUE, [(condition, chosen)], result := writer.new(len(VALUE)))
    assert [writer.same[bit] for bit in result] == list(chosen if condition else VALUE)
    assert not writer.cells


def test_a_cell_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(NotPlain, match="SimpleNamespace is not known here"):
        CellWriter().take(1, SimpleNamespace())


# --- wide numbers ---------------------------------------------------------------------------------


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
