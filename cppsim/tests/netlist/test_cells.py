"""Cells of Amaranth's netlists as plain ones, those of other versions of Amaranth too."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from cppsim.netlist.cells import CellWriter
from cppsim.netlist.design import NotPlain

VALUE = (2 << 16, 2 << 16 | 1, 2 << 16 | 2)
ENABLE = 3 << 16
PATTERNS = (("1-0", "011"), ("--1",), ())


@dataclass
class Matches:
    value: tuple[int, ...]
    patterns: tuple[str, ...]


@dataclass
class PriorityMatch:
    en: int
    inputs: tuple[int, ...]


@dataclass
class Match:
    en: int
    value: tuple[int, ...]
    patterns: tuple[tuple[str, ...], ...]


def test_one_match_is_several_matches_and_their_priority() -> None:
    several, one = CellWriter(), CellWriter()
    for number, patterns in enumerate(PATTERNS):
        several.take(10 + number, Matches(VALUE, patterns))
    conditions = tuple(several.same[10 + number << 16] for number in range(len(PATTERNS)))
    several.take(20, PriorityMatch(ENABLE, conditions))
    one.take(20, Match(ENABLE, VALUE, PATTERNS))
    result = range(20 << 16, (20 << 16) + len(PATTERNS))
    assert one.cells == several.cells
    assert [one.same[bit] for bit in result] == [several.same[bit] for bit in result]
    assert one.same[result[2]] == 0


@dataclass
class Operator:
    operator: str
    inputs: tuple[tuple[int, ...], ...]
    width: int = 1


@pytest.mark.parametrize("sign", ["u", "s"])
@pytest.mark.parametrize(("turned", "straight"), [(">", "<"), (">=", "<=")])
def test_a_greater_operand_is_the_second_of_the_lesser_comparison(
    turned: str, straight: str, sign: str
) -> None:
    first, second = VALUE, tuple(bit + (1 << 16) for bit in VALUE)
    writers = CellWriter(), CellWriter(), CellWriter()
    writers[0].take(20, Operator(sign + turned, (first, second)))
    writers[1].take(20, Operator(sign + straight, (second, first)))
    writers[2].take(20, Operator(sign + straight, (first, second)))
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
