"""Bits that may be 1 are those of the values, and of all others where values are not followed."""

import pytest

from bitlane.compiler.bounds import possible_bits
from bitlane.compiler.nodes import (
    Applied,
    Argument,
    Constant,
    Expression,
    VirtualBuffer,
    add_on_host,
    add_up,
    apply,
    narrow,
    truth_of,
    widen,
    window,
)
from bitlane.lowering.strided import View
from bitlane_rtl.abi import Op

X = Argument(VirtualBuffer(48), View(0, (4,), 4), (12,))


def mask(number: int, node: Expression = X) -> Applied:
    return apply(Op.AND, node, Constant(number.to_bytes(4, "little")))


COUNTS = apply(Op.COUNT, X, itemsize=4)
FIVE = mask(5)
ONES = add_up(apply(Op.COUNT, FIVE), (0,))

CASES: dict[str, tuple[Expression, int]] = {
    "anything": (X, 0xFFFFFFFF),
    "a mask": (FIVE, 5),
    "or": (apply(Op.OR, FIVE, mask(8)), 13),
    "exclusive or": (apply(Op.XOR, FIVE, mask(1)), 5),
    "or with anything": (apply(Op.OR, X, FIVE), 0xFFFFFFFF),
    "not": (apply(Op.NOT, FIVE), 0xFFFFFFFF),
    "a copy": (apply(Op.COPY, FIVE), 5),
    "counts": (COUNTS, 63),
    "counts of a mask": (apply(Op.COUNT, FIVE), 3),
    "counts of one operation": (apply(Op.COUNT_AND, FIVE, X), 63),
    "truth": (truth_of(X), 1),
    "low bytes": (narrow(mask(0x1FF), 1), 255),
    "of a mask": (narrow(FIVE, 1), 5),
    "bytes of counts": (window(COUNTS, 0, (48,), (1,), 1), 255),
    "counts from byte 1 on": (window(COUNTS, 1, (11,), (4,), 4), 0xFFFFFFFF),
    "every other count": (window(COUNTS, 4, (5,), (8,), 4), 63),
    "pairs of counts": (window(COUNTS, 0, (6,), (8,), 8), 0xFFFFFFFFFFFFFFFF),
    "wide": (widen(FIVE, 8, signed=False), 5),
    "signs": (widen(narrow(mask(0x80), 1), 2, signed=True), 0xFF80),
    "no signs": (widen(narrow(mask(0x7F), 1), 2, signed=True), 0x7F),
    "a sum": (ONES, 31),
    "sums of the host": (add_on_host([ONES, ONES], [1, 4], (), 8), 127),
    "a negative weight": (add_on_host([ONES], [-1], (), 4), 0xFFFFFFFF),
    "a weight that exceeds the type": (add_on_host([ONES], [8], (), 1), 0xFF),
}


@pytest.mark.parametrize("name", CASES)
def test_bits_that_may_be_1(name: str) -> None:
    node, bits = CASES[name]
    assert possible_bits(node, lambda stored: None) == bits
