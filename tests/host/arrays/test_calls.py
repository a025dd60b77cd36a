"""Each call of the table gives what NumPy gives: every view, every type, every kind of operand."""

from typing import Any
from zlib import crc32

import numpy as np
import pytest

import bitlane
from bitlane import Device
from bitlane_rtl.abi import Op
from support.host.arrays import count_passes, model, passes, random, same
from support.host.beside_numpy import IN_NUMPY, LAYOUTS, ON_DEVICE, check, special
from support.host.calls import ANY, ROWS, Row
from support.seeds import seeds, slow
from support.system.devices import DEFAULT, NARROW, NUMPY, WIDE, opened


def check_views(device: Device, row: Row, seed: int, step: int) -> int:
    """Check every ``step``th view, in types that change; return how often NumPy has a result."""
    first = crc32(row.text.encode()) % 1000 + seed
    kinds = [row.kinds[(first // step + at) % len(row.kinds)] for at in range(len(LAYOUTS))]
    views = list(zip(LAYOUTS, kinds, strict=True))[first % step :: step]
    return sum(
        check(device, row, kind, layout, 7 * first + at) for at, (layout, kind) in enumerate(views)
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text.replace("::", ":"))
def test_a_call_is_numpys(row: Row) -> None:
    """NumPy's result, or an error where NumPy has one; NumPy accepts it for some view."""
    device = model(memory_bytes=1 << 17)
    tried = [check_views(device, row, seed, 5) for seed in seeds(1, 18)]
    assert any(tried) or any(check_views(device, row, seed, 5) for seed in range(1, 5))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ANY)
def test_every_call_of_a_type(kind: str) -> None:
    device = model(memory_bytes=1 << 17)
    rows = [row for row in ROWS if kind in row.kinds]
    assert sum(check(device, row, kind, "gaps", at) for at, row in enumerate(rows)) > len(rows) / 2


@pytest.mark.parametrize("seed", seeds(1, 6))
@pytest.mark.parametrize("url", [DEFAULT, *map(slow, (NARROW, WIDE, NUMPY))])
def test_every_call_on_a_circuit(url: str, seed: int) -> None:
    with opened(url) as device:
        assert sum(check_views(device, row, seed, len(LAYOUTS)) for row in ROWS) > 200


# --- passes ---------------------------------------------------------------------------------------

FUSED = """
~(x & y)  # NAND
~(x | y)  # NOR
~x ^ y  # XNOR
~x & ~y  # NOR
nor(~x, ~y)  # AND
~x & (z | w)  # NOR, NOR
~x & y  # NOT, AND
~~(~~x ^ y)  # XOR
~(~x ^ y) ^ ~xnor(z, ~w)  # XOR, XOR, XNOR
~(i & j) >> j  # NAND, SHIFT_RIGHT
~((i & j) >> j)  # NAND, SHIFT_RIGHT
(x & y) ^ 0xFFFFFFFF  # NAND
xnor(x, 0) | ~xnor(y, 0xFFFFFFFF)  # NAND
(x & y) ^ 0xFEFFFFFF  # AND, XOR
x.copy() & (y | z).copy()  # OR, AND
~(x & y) & z  # NAND, AND
bit_count(x & y[:1])  # COUNT_AND
bit_count(x ^ y, np.uint32)  # COUNT_XOR
bit_count(~x)  # COUNT_XOR
bit_count(nand(~x, ~y))  # COUNT_OR
bit_count(~(x & y), np.uint32)  # NAND, COUNT
x == y  # COUNT_XOR TEST NEGATE
x != y  # COUNT_XOR TEST
~(x == y)  # COUNT_XOR TEST
~~(x == y)  # COUNT_XOR TEST NEGATE
np.logical_not(x == y)  # COUNT_XOR TEST
np.logical_not(x)  # COUNT TEST NEGATE
np.logical_or(x, y)  # COUNT_OR TEST
np.logical_and(x, y)  # COUNT TEST, COUNT TEST, AND
x.astype(bool)  # COUNT TEST
(x & y).astype(bool)  # COUNT_AND TEST
(x & 4) != 0  # COUNT_AND TEST
np.count_nonzero(x ^ y)  # COUNT_XOR TEST SUM, AND
np.count_nonzero(x == y)  # COUNT_XOR TEST NEGATE SUM, AND
(~(x == y)).sum(1, "u4")  # COUNT_XOR TEST SUM
np.any(x & y)  # COUNT_AND SUM, COUNT TEST
np.all(x)  # COUNT TEST NEGATE SUM, COUNT TEST NEGATE
np.all(x == y, 1)  # COUNT_XOR TEST SUM, COUNT TEST NEGATE
(~((x & y) == 0)).sum(1, "u4")  # COUNT_AND TEST SUM
bit_count(x ^ y).sum(1, "u4")  # COUNT_XOR SUM
bit_count(x | y, np.uint32).sum(1, "u4")  # COUNT_OR SUM
f == 1.5  # 1
f == 0  # 1
np.signbit(f)  # 1
f.astype(bool)  # 1
np.isfinite(f)  # 2
np.isinf(f)  # 2
np.count_nonzero(f)  # 2
np.isnan(f)  # 3
f == f  # 3
f == f[::-1]  # 8
f != f[::-1]  # 8
np.where(x == 5, x, y)  # 8
x.sum()  # 32
(x & 7).sum()  # 3
(5 & x).sum(1)  # 2
(x & 1).sum(0, "u4")  # 1
(x ^ x[0]).sum()  # 33
x.astype("u1").sum()  # 9
(x & 3).astype("u1").astype("u8").sum()  # 4
(x == y).sum(0, "u4")  # 1
bit_count(x).sum(0, "u4")  # 1
bit_count(x).copy().astype("i4").sum(1, "i4")  # 1
((bit_count(x) & 3) | 8).sum()  # 6
(x & 7).sum(1).sum()  # 11
"""
"""Inversions, casts, tests, counts and sums need no pass of their own where the circuit fuses them.

A row is a line of Python on arrays of 32 bits, ``i`` and ``j`` signed ones, ``f`` of floats; behind
``#`` are the passes in any order.
"""

PASSES = [row.split("  # ") for row in FUSED.strip().splitlines()]

INVERTED = {
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ np.asarray(b, a.dtype)),
}


def both(device: Device, text: str) -> tuple[Any, Any]:
    """Return the value of a line of Python on a device, and in NumPy."""
    arrays: dict[str, Any] = {name: random((6, 32), "u4", ord(name)) for name in "xyzw"}
    arrays["x"][::2] = arrays["y"][::2]
    arrays |= {name: random((6, 32), "i4", ord(name)) & 31 for name in "ij"}
    arrays["f"] = special("f4")
    device_names = {f"{name}": getattr(bitlane, f"bit_{name}") for name in INVERTED}
    on_device = {name: device.asarray(array) for name, array in arrays.items()}
    got = eval(text, {"np": np, **ON_DEVICE, **device_names, **on_device})
    with np.errstate(all="ignore"):
        return got, np.asarray(eval(text, {"np": np, **IN_NUMPY, **INVERTED, **arrays}))


@pytest.mark.parametrize(("text", "expected"), PASSES, ids=[text for text, _ in PASSES])
def test_passes_are_fused(device: Device, text: str, expected: str) -> None:
    got, wanted = both(device, text)
    if expected.isdigit():
        assert count_passes(got) == int(expected)
    else:
        assert sorted(passes(got)) == sorted(expected.split(", "))
    assert same(got.get(), wanted)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bit_count(x ^ y)", ["XOR", "COUNT"]),
        ("bit_count(~x, np.uint32)", ["NOT", "COUNT"]),
        ("bit_count(nand(~x, ~y))", ["OR", "COUNT"]),
        ("bit_count(x & y[:1])", ["AND", "COUNT"]),
        ("bit_count(x ^ x[0]).sum(1, 'u4')", ["XOR", "COUNT SUM"]),
    ],
)
def test_a_circuit_without_fused_counts_takes_two_passes(text: str, expected: list[str]) -> None:
    got, wanted = both(model(ops=frozenset(x for x in Op if not x.counts) | {Op.COUNT}), text)
    assert passes(got) == expected
    assert same(got.get(), wanted)
