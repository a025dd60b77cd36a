"""Expressions have one key exactly if one program can compute them, up to open constants."""

from collections.abc import Callable
from itertools import combinations

import pytest
from amaranth.hdl import Cat, ClockSignal, Const, Mux, Shape, Signal, Value, signed, unsigned

from cppsim import structure
from cppsim.structure import open_constants, structure_of

a, b, c = (Signal(8, name=name) for name in "abc")
one = Const(1, 8)

DIFFERENT: dict[str, Callable[[], Value]] = {
    "signal": lambda: a + Const(1, 8),
    "another signal": lambda: b + Const(1, 8),
    "another operator": lambda: a - Const(1, 8),
    "wider constant": lambda: a + Const(1, 9),
    "signed constant": lambda: a + Const(1, signed(8)),
    "wide constant alone": lambda: a + Const(1 << 69, 70),
    "operands exchanged": lambda: Const(1, 8) + a,
    "one operand": lambda: -a,
    "two operands": lambda: a - b,
    "one operand first": lambda: Cat(-a, b - c),
    "two operands first": lambda: Cat(a - b, -c),
    "reinterpreted": lambda: a.as_signed() + Const(1, 8),
    "slice": lambda: a[2:5],
    "slice with another start": lambda: a[1:5],
    "slice with another stop": lambda: a[2:6],
    "slice of another": lambda: b[2:5],
    "slice of a sum": lambda: (a + b)[2:5],
    "sum of slices": lambda: a[2:5] + b,
    "part": lambda: a.bit_select(b, 3),
    "part of another width": lambda: a.bit_select(b, 4),
    "part of words": lambda: a.word_select(b, 3),
    "joined": lambda: Cat(a, b),
    "three joined": lambda: Cat(a, b, c),
    "joined in pairs": lambda: Cat(Cat(a, b), c),
    "choice": lambda: Mux(a, b, c),
    "other choice": lambda: Mux(a, c, b),
    "pattern": lambda: a.matches("1-------"),
    "other pattern": lambda: a.matches("0-------"),
    "two constants": lambda: (a + Const(1, 8)) ^ (b + Const(1, 8)),
    "one constant twice": lambda: (a + one) ^ (b + one),
    "one constant in other operands": lambda: (a + one) ^ (one + b),
    "first again": lambda: Cat(x := a + b, y := a - b, x, y, x),
    "second again": lambda: Cat(x := a + b, y := a - b, y, x, x),
    "wide constant": lambda: a & Const(1 << 69, 70),
    "other wide constant": lambda: a & Const(1 << 68, 70),
    "signed wide constant": lambda: a & Const(1 << 68, signed(70)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_an_expression_made_anew_has_its_structure(name: str) -> None:
    assert structure_of(DIFFERENT[name]()) == structure_of(DIFFERENT[name]()) is not None


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_short_way_to_a_structure_is_that_of_the_walk(name: str) -> None:
    value = DIFFERENT[name]()
    assert structure_of(value) == structure._walked(value, [])


def test_expressions_that_differ_have_different_keys() -> None:
    # The shapes of signals are those of their objects, which the key names.
    keys = {name: (structure_of(make()) or ((), ()))[0] for name, make in DIFFERENT.items()}
    same = [(x, y) for x, y in combinations(keys, 2) if keys[x] == keys[y]]
    assert not same


@pytest.mark.parametrize("shape", [unsigned(8), signed(8), unsigned(64)])
def test_constants_of_one_shape_are_open(shape: Shape) -> None:
    for number in (0, 1, 77):
        value = (a == Const(number, shape)) & (b == Const(2, shape))
        known = structure_of((a == Const(3, shape)) & (b == Const(4, shape)))
        assert structure_of(value) == (known and (known[0], (number, 2)))
        assert [x.value for x in open_constants(value)] == [number, 2]


def test_a_constant_at_two_places_is_open_once() -> None:
    value = (a == one) | (b == one)
    assert [id(x) for x in open_constants(value)] == [id(one)]


def test_parts_that_are_unknown_have_no_structure() -> None:
    assert structure_of(a + ClockSignal()) is None
