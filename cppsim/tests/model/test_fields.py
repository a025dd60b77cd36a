"""Ports take their fields, or words and numbers of any type, and nothing that does not fit."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Shape, signed
from amaranth.lib import data, enum
from amaranth.lib.wiring import In, Out

import cppsim
from cppsim.circuits import AnyModel
from cppsim.errors import PortError
from cppsim.model.fields import bits_of
from support.carriers import Part
from support.seeds import seeds
from support.small import refused


class Kind(enum.Enum, shape=3):
    """A field that is an enum."""

    IDLE = 0
    LAST = 5


INNER = data.StructLayout({"low": 3, "negative": signed(4)})
FRAME = data.StructLayout(
    {"kind": Kind, "inner": INNER, "words": data.ArrayLayout(signed(5), 3), "flag": 1}
)


def framed() -> Part:
    """Return a component whose ``o`` is ``i``, an edge later; ``either`` is a union."""
    union = data.UnionLayout({"whole": 8, "half": 4})
    members = {"i": In(FRAME), "either": In(union), "number": In(signed(70)), "o": Out(FRAME)}
    return Part(members, sync=lambda x: x.o.eq(x.i))


VALUE = {"kind": Kind.LAST, "inner": {"negative": -8}, "words": [-16, 15, np.int8(-1)], "flag": 1}


def test_a_dict_sets_the_fields_and_the_rest_is_0(make: Callable[..., AnyModel]) -> None:
    dut = framed()
    model: Any = make(dut)
    # Amaranth's constants know no numbers of NumPy.
    expected = FRAME.const({**VALUE, "words": [-16, 15, -1]})
    for port, value in (("i", VALUE), (dut.i, expected), ("i", expected.as_bits())):
        model.set(port, 0)
        model.set(port, value)
        model.step()
        assert model.get("o") == expected.as_bits()
    model.set("either", {"half": 3})
    assert model.get("either") == 3


@pytest.mark.parametrize(
    ("port", "value", "also", "line"),
    [
        ("i", {"kinds": 1}, KeyError, "port 'i': no field 'kinds'; there are: flag, inner, kind, "),
        ("i", {"flag": 2}, ValueError, "port 'i.flag': 2 does not fit 1 bits; expected 0 to 1"),
        ("i", {"inner": {"negative": 8}}, ValueError, "'i.inner.negative': 8 .*; expected -8 to 7"),
        ("i", {"kind": 8}, ValueError, "port 'i.kind': 8 does not fit 3 bits; expected 0 to 7"),
        ("i", {"words": [1, 2]}, ValueError, "port 'i.words': a list of 2 values; expected 3"),
        ("i", {"words": 1 << 15}, ValueError, "port 'i.words': 32768 does not fit 15 bits"),
        ("i", {"words": "abc"}, TypeError, "port 'i.words': 'abc'; expected a list"),
        ("i", {"flag": 0.5}, TypeError, "port 'i.flag': 0.5; expected a whole number"),
        ("i", [1], TypeError, r"port 'i': \[1\]; expected a dict or a whole number"),
        ("i", INNER.const({}), TypeError, "port 'i': Const.*; expected a constant of its layout"),
        ("i", 1 << 26, ValueError, "port 'i': 67108864 does not fit 26 bits; .* 0 to 67108863"),
        ("either", {"whole": 1, "half": 1}, ValueError, "'either': 2 fields of a union; exp"),
        ("number", {"x": 1}, TypeError, "port 'number': {'x': 1}; expected a whole number"),
        ("number", 1 << 69, ValueError, r"70 bits, signed; expected -2\*\*69 to 2\*\*69 - 1"),
        ("o", VALUE, ValueError, "port 'o' is driven by the design; only inputs can be set"),
        ("p", VALUE, KeyError, "no port 'p'; there are: either, i, number, o, rst"),
        (3, 1, TypeError, "port: 3; expected a string"),
    ],
)
def test_what_does_not_fit_is_one_line(
    make: Callable[..., AnyModel], port: Any, value: Any, also: type[Exception], line: str
) -> None:
    model = make(framed())
    model.set("i", 5)
    assert isinstance(refused(PortError, line, model.set, port, value), also)
    assert model.get("i") == 5, "nothing is set"


def test_a_batch_says_that_fields_are_its_ports() -> None:
    batch = cppsim.Batch(framed(), 2, "threads")
    with pytest.raises(cppsim.BatchError, match="'i' takes integers, not a dict; set its fields"):
        batch.set("i", {"flag": 1})  # type: ignore[arg-type]
    batch.set("i.flag", 1)


def _random(rng: random.Random, depth: int) -> tuple[Any, Any]:
    """Return a shape and a value of it."""
    choice = rng.randrange(5) if depth else 0
    if choice <= 1:
        shape = Shape(rng.randint(1, 40), signed=rng.random() < 0.5)
        least = -(1 << shape.width - 1) if shape.signed else 0
        return shape, least + rng.randrange(1 << shape.width)
    inner = [_random(rng, depth - 1) for _ in range(rng.randint(1, 4))]
    if choice == 2:
        shape, value = inner[0]
        return data.ArrayLayout(shape, 2), [value, value]
    names = [f"f{number}" for number in range(len(inner))]
    if choice == 3:
        layout: Any = data.UnionLayout(dict(zip(names, (x for x, _ in inner), strict=True)))
        return layout, {names[-1]: inner[-1][1]}
    layout = data.StructLayout(dict(zip(names, (x for x, _ in inner), strict=True)))
    values = zip(names, inner, strict=True)
    return layout, {name: value for name, (_, value) in values if rng.random() < 0.8}


@pytest.mark.parametrize("seed", seeds(50, 1000))
def test_bits_are_those_of_amaranths_constants(seed: int) -> None:
    rng = random.Random(seed)
    shape, value = _random(rng, 3)
    while not isinstance(shape, data.Layout):
        shape, value = _random(rng, 3)
    assert bits_of("port", shape, value) == shape.const(value).as_bits()
