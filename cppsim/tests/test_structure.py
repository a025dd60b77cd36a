"""Expressions have one key exactly if one program can compute them, up to open constants."""

from itertools import combinations

import pytest
from amaranth import hdl
from amaranth.hdl import ClockSignal, Const, Shape, Signal, Value, signed, unsigned

from cppsim import structure
from cppsim.structure import open_constants, structure_of

a, b, c = (Signal(8, name=name) for name in "abc")
one = Const(1, 8)

DIFFERENT = """
a + Const(1, 8); b + Const(1, 8); a - Const(1, 8); a + Const(1, 9); a + Const(1, signed(8))
a + Const(1 << 69, 70); Const(1, 8) + a; -a; a - b; Cat(-a, b - c); Cat(a - b, -c)
a.as_signed() + Const(1, 8); a[2:5]; a[1:5]; a[2:6]; b[2:5]; (a + b)[2:5]; a[2:5] + b
a.bit_select(b, 3); a.bit_select(b, 4); a.word_select(b, 3); Cat(a, b); Cat(a, b, c)
Cat(Cat(a, b), c); Mux(a, b, c); Mux(a, c, b); a.matches("1-------"); a.matches("0-------")
(a + Const(1, 8)) ^ (b + Const(1, 8)); (a + one) ^ (b + one); (a + one) ^ (one + b)
Cat(x := a + b, y := a - b, x, y, x); Cat(x := a + b, y := a - b, y, x, x)
a & Const(1 << 69, 70); a & Const(1 << 68, 70); a & Const(1 << 68, signed(70))
"""
"""Expressions that differ in more than open constants."""

TEXTS = [text.strip() for line in DIFFERENT.strip().splitlines() for text in line.split(";")]


def made(text: str) -> Value:
    value: Value = eval(text, {**vars(hdl), "a": a, "b": b, "c": c, "one": one})
    return value


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_made_anew_has_its_structure_which_is_that_of_the_walk(text: str) -> None:
    value = made(text)
    assert structure_of(made(text)) == structure_of(value) is not None
    assert structure_of(value) == structure._walked(value, [])


def test_expressions_that_differ_have_different_keys() -> None:
    # The shapes of signals are those of their objects, which the key names.
    keys = {text: (structure_of(made(text)) or ((), ()))[0] for text in TEXTS}
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
