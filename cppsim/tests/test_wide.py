"""Values of thousands of bits: the right answer or one line, in bounded time and memory."""

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib.memory import Memory

import cppsim
from cppsim import Batch, BatchError, FallbackWarning
from cppsim.testing import EXECUTORS, Bench
from support.seeds import slow

Result = tuple[Any, Callable[[int, int, int], int]]


def operators(a: Any, b: Any, by: Any) -> dict[str, Result]:
    """Return expressions of all operators on ``a``, ``b`` and ``by``, each with its value."""
    width, pattern = len(a), (1 << len(a)) // 3
    half, ninth, top = width // 2, width // 9, 1 << width

    def signed(x: int) -> int:
        return x - top if x >> width - 1 else x

    s, t = a.as_signed(), b.as_signed()
    return {
        "<<": ((a << by)[: width + 9], lambda x, _, k: x << k),
        ">>": (a >> by, lambda x, _, k: x >> k),
        "signed >>": ((s >> by).as_unsigned(), lambda x, _, k: signed(x) >> k),
        ">> by a wide amount": (a >> b, lambda x, y, _: x >> y if y < width else 0),
        "+": (a + b, lambda x, y, _: x + y),
        "-": ((a - b)[:width], lambda x, y, _: x - y),
        "negative": ((-a)[:width], lambda x, *_: -x),
        "*": ((a[:half] * b[:half])[:width], lambda x, y, _: x % (1 << half) * (y % (1 << half))),
        "//": (a // b, lambda x, y, _: x // y if y else 0),
        "%": (a % b, lambda x, y, _: x % y if y else 0),
        "signed //": (s // t, lambda x, y, _: signed(x) // signed(y) if y else 0),
        "signed %": ((s % t), lambda x, y, _: signed(x) % signed(y) if y else 0),
        "==": (a == b, lambda x, y, _: x == y),
        "!=": (a != b, lambda x, y, _: x != y),
        "<": (a < b, lambda x, y, _: x < y),
        "signed <=": (s <= t, lambda x, y, _: signed(x) <= signed(y)),
        "any": (a.any(), lambda x, *_: x != 0),
        "all": (a.all(), lambda x, *_: x == top - 1),
        "odd": (a.xor(), lambda x, *_: x.bit_count() & 1),
        "~": (~a, lambda x, *_: ~x),
        "constant": (a ^ Const(pattern, width), lambda x, *_: x ^ pattern),
        "matches": (a.matches(f"1{'-' * (width - 2)}1"), lambda x, *_: x >> width - 1 & x),
        "matches all": (a.matches(pattern), lambda x, *_: x == pattern),
        "bit_select": (a.bit_select(by, half), lambda x, _, k: x >> k & (1 << half) - 1),
        "word_select": (
            a.word_select(by[:4], ninth),
            lambda x, _, k: x >> k % 16 * ninth & (1 << ninth) - 1,
        ),
        "choice": (Mux(by[0], a, b), lambda x, y, k: x if k & 1 else y),
        "array": (Array([a, b])[by[0]], lambda x, y, k: y if k & 1 else x),
    }


FEW = ("<<", "==", "any", "all", "odd", "constant", "matches all")
"""Results whose operands are joined from several words, or that once took long to write."""

SIZES = [(4200, FEW), slow(4200, None), slow(16_384, FEW)]


@pytest.mark.parametrize(("width", "names"), SIZES)
def test_operators_of_wide_values(width: int, names: Sequence[str] | None) -> None:
    m, rng = Module(), random.Random(width)
    a, b, by, row = Signal(width), Signal(width), Signal(14), Signal(3)
    results = operators(a, b, by)
    results = {name: results[name] for name in names or results}
    outputs = {name: Signal(len(value)) for name, (value, _) in results.items()}
    for name, (value, _) in results.items():
        m.d.comb += outputs[name].eq(value)
    m.submodules.memory = memory = Memory(shape=width, depth=8, init=[(1 << width) // 7])
    read, write = memory.read_port(domain="comb"), memory.write_port()
    m.d.comb += [read.addr.eq(row), write.addr.eq(row), write.data.eq(a), write.en.eq(1)]
    pattern = (1 << width) // 3
    cases = [
        (pattern, 0, 3),
        ((1 << width) - 1, (1 << width) - 1, 8192),
        *((rng.getrandbits(width), rng.getrandbits(w), rng.getrandbits(14)) for w in (width, 9, 5)),
    ]

    async def testbench(ctx: Any) -> None:
        assert ctx.get(read.data) == (1 << width) // 7
        for number, (x, y, k) in enumerate(cases):
            for signal, value in ((a, x), (b, y), (by, k), (row, number)):
                ctx.set(signal, value)
            await ctx.tick()
            for name, (_, value_of) in results.items():
                mask = (1 << len(outputs[name])) - 1
                assert ctx.get(outputs[name]) == int(value_of(x, y, k)) & mask, (name, number)
            assert ctx.get(read.data) == x

    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        Bench(EXECUTORS["always"]).run(m, testbench)


@pytest.mark.parametrize(
    "value_of",
    [
        lambda a: a << Signal(16),
        lambda a: a << Signal(70),
        lambda a: a << Signal(5000),
        lambda a: a * a * a * a,
        lambda a: a.replicate(4),
    ],
)
def test_values_that_are_too_wide_are_one_line(value_of: Callable[[Any], Any]) -> None:
    m, a, o = Module(), Signal(20_000), Signal()
    m.d.comb += o.eq(value_of(a))
    line = r"^left to Amaranth's simulator: a value of .{5,13} bits is too wide$"
    with pytest.warns(FallbackWarning, match=line), pytest.raises((OverflowError, MemoryError)):
        cppsim.Simulator(m, mode="always").run()
    with pytest.raises(BatchError, match=r"^a value of .{5,13} bits is too wide$"):
        Batch(m, 2, "threads")


def test_a_number_that_python_does_not_write_is_refused_by_its_size() -> None:
    """Python writes no number of more than 4,300 digits, which is a ``ValueError``."""
    m, a, o = Module(), Signal(16_000, name="a", init=1 << 15_999), Signal(name="o")
    m.d.comb += o.eq(a[-1])
    batch = Batch(m, 2, "threads")
    assert batch.get("o").tolist() == [1, 1]
    for values in (1 << 20_000, [1 << 20_000, 0], -1 << 20_000):
        with pytest.raises(BatchError, match=r"'a': a number of 2000[01] bits does not fit 16000"):
            batch.set("a", values)
    with pytest.raises(BatchError, match="cycles: a number of 20001 bits is more than"):
        batch.step(1 << 20_000)
    batch.set("a", np.array([(1 << 15_999) - 1, 1 << 15_999], object))
    assert batch.get("o").tolist() == [0, 1]


@pytest.mark.parametrize(("width", "bits"), [(400, 9), (5000, 10), (5000, 13), (14_000, 14)])
def test_a_part_that_is_assigned_at_too_many_places_is_left_to_amaranth(
    width: int, bits: int
) -> None:
    m, a, at, o = Module(), Signal(width, init=7), Signal(bits), Signal(width)
    m.d.comb += o.bit_select(at, width // 2).eq(a)
    line = r"simulator: \d+ bits are assigned at \d+ places; assign a shifted value instead$"
    with pytest.warns(FallbackWarning, match=line):
        cppsim.Simulator(m, mode="always")
