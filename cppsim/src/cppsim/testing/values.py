"""Random values in Amaranth: signals, numbers for them, expressions of all operators."""

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Array, C, Cat, Const, Mux, Shape, Signal, Value

_WIDTHS = (1, 1, 2, 3, 7, 8, 16, 31, 32, 33, 48, 63, 64, 65, 100, 128, 130)
_WIDEST = 200
_most = _WIDEST
"""Bits of the widest value."""


def narrow_values(replace: Callable[[Any, str, Any], None]) -> None:
    """Let no operation have more than 64 bits; ``replace`` is called like ``setattr``."""
    here = sys.modules[__name__]
    replace(here, "_WIDTHS", (1, 1, 2, 3, 7, 8, 16, 24, 29))
    replace(here, "_most", 30)  # a product has 60


def _shape(chance: random.Random) -> Shape:
    """Return a shape, usually of a critical width, now and then of any width."""
    width = chance.choice(_WIDTHS) if chance.random() < 0.8 else chance.randint(0, _most)
    return Shape(width, width > 0 and chance.random() < 0.5)


def random_signal(chance: random.Random, name: str) -> Signal:
    """Return a signal of any shape."""
    return Signal(_shape(chance), name=name)


def random_number(chance: random.Random, signal: Signal) -> int:
    """Return a value of ``signal``, often one at an end of its range."""
    ends = (0, 1, -1, 1 << chance.randrange(_WIDEST))
    value = chance.choice((*ends, chance.getrandbits(8), chance.getrandbits(_WIDEST)))
    return Const(value & (1 << len(signal)) - 1, signal.shape()).value


def cut(chance: random.Random, value: Value) -> Value:
    """Return ``value``, or some of its bits if it is wider than others may be."""
    most = _most
    return value[: chance.randint(1, most)] if len(value) > most else value


def few(chance: random.Random, value: Value, most: int) -> Value:
    """Return an unsigned value of ``most`` bits or fewer."""
    return value.as_unsigned()[: chance.randint(0, most)]


def _constant(chance: random.Random) -> Value:
    shape = _shape(chance)
    value = chance.getrandbits(shape.width)
    return C(value - (value >> (shape.width - 1) << shape.width if shape.signed else 0), shape)


def random_expression(chance: random.Random, leaves: Sequence[Value], depth: int) -> Value:
    """Return an expression of up to ``depth`` nested operators."""
    value = _expression(chance, leaves, depth)
    return cut(chance, Value.cast(value)) if _most < _WIDEST else value


def _expression(chance: random.Random, leaves: Sequence[Value], depth: int) -> Value:
    if depth == 0 or chance.random() < 0.15:
        return _constant(chance) if chance.random() < 0.25 else chance.choice(leaves)
    inner = [Value.cast(random_expression(chance, leaves, depth - 1)) for _ in range(3)]
    a, b, c = (cut(chance, value) for value in inner)
    kind = chance.randrange(4)
    if kind == 0:
        return _arithmetic(chance, a, b)
    if kind == 1:
        return _logic(chance, a, b)
    if kind == 2:
        return _parts(chance, leaves, a, b)
    choices = [Mux(a, b, c), Array([a, b, c])[few(chance, c, 3)], Cat(a, b), Cat()]
    return chance.choice(choices)


def _arithmetic(chance: random.Random, a: Value, b: Value) -> Value:
    return chance.choice(
        (
            lambda: a + b,
            lambda: a - b,
            lambda: a * b,
            lambda: a // b,
            lambda: a % b,
            lambda: -a,
            lambda: abs(a),
            lambda: a << few(chance, b, 7),
            lambda: a >> few(chance, b, 70),
            lambda: a < b,
            lambda: a <= b,
            lambda: a > b,
            lambda: a >= b,
        )
    )()


def _logic(chance: random.Random, a: Value, b: Value) -> Value:
    width = min(len(a), 6)
    patterns = ["".join(chance.choice("01-") for _ in range(width)) for _ in range(3)]
    return chance.choice(
        (
            lambda: ~a,
            lambda: a & b,
            lambda: a | b,
            lambda: a ^ b,
            lambda: a == b,
            lambda: a != b,
            lambda: a.bool(),
            lambda: a.any(),
            lambda: a.all(),
            lambda: a.xor(),
            lambda: a[:width].matches(*patterns),
        )
    )()


def _parts(chance: random.Random, leaves: Sequence[Value], a: Value, b: Value) -> Value:
    # Amaranth's simulator shows other bits than hardware where a part is taken out of the range of
    # an inverted or reinterpreted value; signals and concatenations are as they are.
    value = chance.choice(leaves) if chance.random() < 0.5 else Cat(a)
    low = chance.randint(0, len(a))
    return chance.choice(
        (
            lambda: a[low : chance.randint(low, len(a))],
            lambda: value.bit_select(few(chance, b, 8), chance.randint(0, len(value))),
            lambda: value.word_select(few(chance, b, 6), chance.randint(1, max(1, len(value)))),
            lambda: a[:: chance.choice((-1, 2, 3))],
            lambda: a.replicate(chance.randint(0, 3)),
            lambda: a.shift_left(chance.randint(0, 70)),
            lambda: a.shift_right(chance.randint(0, 70)),
            lambda: a.rotate_left(chance.randint(-9, 70)) if len(a) else a,
            lambda: a.as_unsigned(),
            lambda: a.as_signed() if len(a) else a,
        )
    )()
