"""C++ expressions of bits that lie in several variables."""

import itertools

import pytest

from cppsim.cpp.words import Words, operation
from cppsim.netlist.design import CellKind, PlainCell

EXPECTED = {
    CellKind.ALL: lambda left, right: left == 0b111,
    CellKind.ANY: lambda left, right: left != 0,
    CellKind.EQUAL: lambda left, right: left == right,
    CellKind.UNEQUAL: lambda left, right: left != right,
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_each_part_of_an_operand_counts(kind: CellKind) -> None:
    words = Words()
    words.define("a", (10, 11, 12))
    words.define("b", (20,))
    words.define("c", (30, 31, 32))
    left, right = (11, 12, 20), (30, 31, 32)
    operands = (left,) if kind in (CellKind.ALL, CellKind.ANY) else (left, right)
    text = operation(PlainCell(kind, operands, (40,)), words).replace("ull", "")
    for a, b, c in itertools.product(range(8), range(2), range(8)):
        found = eval(text.replace("1u", "1"), {"a": a, "b": b, "c": c})
        assert found == EXPECTED[kind](a >> 1 | b << 2, c), text


@pytest.mark.parametrize(("kind", "text"), [(CellKind.ALL, "a == 7ull"), (CellKind.ANY, "a != 0")])
def test_an_operand_that_is_one_variable_is_not_cut(kind: CellKind, text: str) -> None:
    words = Words()
    words.define("a", (10, 11, 12))
    assert operation(PlainCell(kind, ((10, 11, 12),), (40,)), words) == text
