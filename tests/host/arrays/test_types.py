"""The types in which operands meet, and the results, are NumPy's: for arrays here and of the host.

Every pair of types, Python's integers, lists, members of an ``IntEnum`` and NumPy's scalars.
"""

import gc
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane import Array, DataTypeError, Device, OutOfRangeError
from bitlane import array_api as xp
from support.host.arrays import KINDS, OPERATORS, model, random, same
from support.system.devices import DEFAULT, opened

METHODS: dict[np.ufunc, str] = {
    np.bitwise_and: "bit_and",
    np.bitwise_or: "bit_or",
    np.bitwise_xor: "bit_xor",
    np.left_shift: "bit_shift_left",
    np.right_shift: "bit_shift_right",
}


class Flag(IntEnum):
    ONE = 1
    MANY = 300


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with opened(DEFAULT) as device:
        yield device
        gc.collect()


def operand(kind: str, seed: int) -> NDArray[Any]:
    """Return random values, and shift counts below 0, below the width and above it."""
    if kind == "?":
        return random(24, "u1", seed) > 127
    values = random(24, kind, seed)
    values[:12] = np.arange(12).astype(kind) * 7 - (9 if kind[0] == "i" else 0)
    return values


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("one", KINDS)
def test_every_pair_of_types(device: Device, function: np.ufunc, one: str) -> None:
    method: Callable[..., Any] = getattr(device, METHODS[function])
    for other in KINDS:
        a, b = operand(one, 1), operand(other, 2)
        x, y = device.asarray(a), device.asarray(b)
        if {one, other} & {"u8"} and {one[0], other[0]} == {"u", "i"}:
            for call in (lambda: function(x, y), lambda: function(x, b), lambda: method(a, b)):  # noqa: B023
                with pytest.raises(DataTypeError, match="that an integer type can hold together"):
                    call()
            continue
        expected = function(a, b)
        for got in (function(x, y), function(x, b), function(a, y), method(x, b)):
            assert same(got.get(), expected), (one, other)
        assert same(method(a, b), expected), (one, other)


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize(
    "other",
    [1, 0, True, [1, 2, 3], Flag.ONE, Flag.MANY, np.int8(-3), np.uint16(9), np.bool_(True)],
    ids=repr,
)
def test_what_python_and_numpy_have_as_numbers(device: Device, one: str, other: Any) -> None:
    a = operand(one, 3)[:3]
    x = device.asarray(a)
    for function in OPERATORS:
        try:
            expected = function(a, other), function(other, a)
        except TypeError:
            with pytest.raises(DataTypeError):
                function(x, other)
            continue
        assert same(function(x, other).get(), expected[0]), function
        assert same(function(other, x).get(), expected[1]), function
        assert same(getattr(device, METHODS[function])(a, other), expected[0]), function


@pytest.mark.parametrize("number", [256, -1, 1 << 70])
def test_integers_that_do_not_fit(device: Device, number: int) -> None:
    x = device.asarray(np.zeros(3, np.uint8))
    with pytest.raises(OutOfRangeError, match=f"{number} does not fit uint8; expected 0 to 255"):
        x ^ number
    with pytest.raises(OutOfRangeError):
        x[0] = number
    with pytest.raises(OverflowError):
        np.zeros(3, np.uint8) ^ number


@pytest.mark.parametrize("number", [2**60 + 2**36 + 1, -(2**60) - 2**36 - 1, 2**63 + 2**39 + 1])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_integers_beside_floats_are_rounded_twice(device: Device, dtype: str, number: int) -> None:
    """As NumPy does: to float64 first. Elements of an array of integers are rounded once."""
    ways: list[Callable[[Any], None]] = [
        lambda x: x.__setitem__(0, number),
        lambda x: x.__setitem__(..., [number] * 2),
        lambda x: x.__setitem__([1], [number]),
        lambda x: x.__setitem__(..., np.array([number] * 2)),
        lambda x: np.put(x, 1, number),
        lambda x: np.copyto(x, number),
        lambda x: np.copyto(x, [number]),
    ]
    with np.errstate(over="ignore"):
        for way in ways:
            x, a = device.asarray(np.zeros(2, dtype)), np.zeros(2, dtype)
            way(x)
            way(a)
            assert same(x.get(), a)
    with pytest.raises(OutOfRangeError, match=f"expected one that float{8 * x.itemsize} holds"):
        x[0] = 10**400


@pytest.mark.parametrize("dtype", ["u1", "i2", "u8", "f4", "?"])
def test_the_operators_that_numpy_lacks(device: Device, dtype: str) -> None:
    a, b = operand(dtype, 1).reshape(4, 6), operand(dtype, 2).reshape(4, 6)
    bits = "?" if dtype == "?" else f"u{a.itemsize}"
    both = {
        "nand": ~(a.view(bits) & b.view(bits)),
        "nor": ~(a.view(bits) | b.view(bits)),
        "xnor": ~(a.view(bits) ^ b.view(bits)),
    }
    x = device.asarray(a)
    for name, expected in both.items():
        method = getattr(device, f"bit_{name}")
        assert same(method(a, b), expected.view(dtype)), name
        assert same(method(x, b).get(), expected.view(dtype)), name
    assert same(device.bit_not(a), (~a.view(bits)).view(dtype))
    assert same(device.bit_copy(a.T), a.T)
    assert same(device.bit_copy(x).get(), a)


@pytest.mark.parametrize(("old", "new"), list(product(KINDS, KINDS)))
def test_conversions_are_numpys(device: Device, old: str, new: str) -> None:
    a = operand(old, 5).reshape(4, 6)
    x = device.asarray(a)
    assert same(x.astype(new).get(), a.astype(new))
    assert same(x.T[::-1, 1:].astype(new).get(), a.T[::-1, 1:].astype(new))
    assert same((x ^ x[0]).astype(new).get(), (a ^ a[0]).astype(new))


def test_truth_values_are_no_view_of_numbers(device: Device) -> None:
    truth = np.array([True, False])
    x = device.asarray(truth)
    assert same(x.view(bool).view("u1").get(), truth.view("u1"))
    numbers = device.asarray(np.array([2, 1, 0, 255], np.uint8))
    with pytest.raises(DataTypeError, match=r"view: from uint8 to bool; .* astype\(bool\) makes"):
        numbers.view(bool)
    assert int(numbers.astype(bool).sum()) == 3


def test_floats_have_bits_alone(device: Device) -> None:
    a = random((2, 3), "f4")
    x = device.asarray(a)
    assert same(x.get(), a)
    assert same(device.bit_not(x).get(), device.bit_not(a))
    assert same(bitlane.bit_xor(x, a).get().view("u4"), np.zeros((2, 3), "u4"))
    assert same(x.view("u4").get(), a.view("u4"))


def test_casting_may_be_refused() -> None:
    device = model()
    a, b = np.zeros(3, np.uint8), np.zeros(3, np.int8)
    for first in (a, device.asarray(a)):
        assert device.bit_or(first, b).dtype == np.int16
        assert device.bit_or(first, 1, casting="no").dtype == np.uint8
        with pytest.raises(DataTypeError, match="uint8 and int8; expected the same type"):
            device.bit_or(first, b, casting="no")


def test_operands_of_the_host_are_converted_piece_by_piece() -> None:
    device = model(memory_bytes=1 << 12)
    a, b = random((90, 80), "i1", 1), random((80,), ">i4", 2)
    assert a.nbytes > 1 << 12
    assert same(device.bit_xor(a, b), a ^ b.astype("i4"))
    assert same(device.bit_and(a.T, b[:, None]), a.T & b[:, None].astype("i4"))
    out = np.zeros((90, 80), "i4")
    device.bit_shift_right(b, a, out=out)
    assert same(out, b.astype("i4") >> a)


BIG_ROWS = """
d.asarray(a.astype(BIG))  # a
d.asarray(a, dtype=BIG)  # a
d.asarray(d.asarray(a), dtype=BIG)  # a
xp.asarray(a, dtype=BIG, device=d)  # a
xp.empty(a.shape, dtype=BIG, device=d) & 0  # a & 0
xp.zeros(a.shape, dtype=BIG, device=d)  # a & 0
xp.ones(a.shape, dtype=BIG, device=d)  # a & 0 | 1
xp.full((3, 4), 258, dtype=BIG, device=d)  # a & 0 | 258
xp.full((3, 4), a[1, 2].astype(BIG), device=d)  # a & 0 | a[1, 2]
xp.full_like(d.asarray(a), 258, dtype=BIG)  # a & 0 | 258
xp.eye(3, 4, dtype=BIG, device=d)  # np.eye(3, 4, dtype="u4")
xp.arange(300, dtype=BIG, device=d)  # np.arange(300, dtype="u4")
xp.linspace(0, 300, 4, dtype=BIG, device=d)  # np.linspace(0, 300, 4, dtype="u4")
d.asarray(a).astype(BIG)  # a
d.asarray(a).astype(BIG, copy=False)  # a
d.asarray(a.astype(">i2")).astype(BIG)  # a.astype("i2").astype("u4")
d.bit_count(d.asarray(a), dtype=BIG)  # np.bitwise_count(a).astype("u4")
d.bit_count(a.astype(BIG), dtype=BIG)  # np.bitwise_count(a).astype("u4")
d.bit_count(d.asarray(a)).sum(0, dtype=BIG)  # np.bitwise_count(a).sum(0, dtype="u4")
np.sum(d.bit_count(d.asarray(a)), 0, dtype=BIG)  # np.bitwise_count(a).sum(0, dtype="u4")
d.cardinality(d.asarray(a), axis=0, dtype=BIG)  # np.bitwise_count(a).sum(0, dtype="u4")
d.hamming(a.astype(BIG), a[0].astype(BIG), 0, dtype=BIG)  # np.bitwise_count(a ^ a[0]).sum(0)
d.asarray(a) ^ a[1, 2].astype(BIG)  # a ^ a[1, 2]
d.asarray(a) == a[1, 2].astype(BIG)  # a == a[1, 2]
d.asarray(a.astype("f4")) == a[1, 2].astype(">f4")  # a.astype("f4") == a[1, 2].astype("f4")
assigned(d.asarray(a), a[1, 2].astype(BIG))  # a & 0 | a[1, 2]
"""
"""Calls with types of big-endian bytes; behind ``#`` are their results, in the native order."""


def assigned(x: Array, value: Any) -> Array:
    x[...] = value
    return x


@pytest.mark.parametrize("row", BIG_ROWS.strip().splitlines())
def test_a_foreign_byte_order_changes_no_value(device: Device, row: str) -> None:
    call, _, wanted = row.partition("  # ")
    names = {"np": np, "xp": xp, "d": device, "assigned": assigned, "BIG": np.dtype(">u4")}
    a = random((3, 4), "u4")
    got, expected = (eval(text, names | {"a": a}) for text in (call, wanted))
    got = got.get() if isinstance(got, Array) else got
    assert got.dtype.isnative
    assert np.array_equal(got, expected)


def test_outputs_may_have_a_foreign_byte_order(device: Device) -> None:
    a = random((3, 4), "u4")
    x = device.asarray(a)
    out = np.zeros((3, 4), ">u4")
    np.invert(x, out=out)
    assert np.array_equal(out, ~a)
    device.bit_xor(x, a[0], out=out)
    assert np.array_equal(out, a ^ a[0])
    device.bit_count(x, out=out)
    assert np.array_equal(out, np.bitwise_count(a))
    np.copyto(out, x)
    assert np.array_equal(out, a)
    assert np.array_equal(np.asarray(x, ">u4"), a)
    assert np.array_equal(x.__array__(np.dtype(">u4")), a)
    assert np.array_equal(x.get(out=np.zeros((3, 4), ">u4")), a)
    sums = np.zeros(4, ">u4")
    device.bit_count(x).sum(0, out=sums)
    assert np.array_equal(sums, np.bitwise_count(a).sum(0))
    np.count_nonzero(x, axis=0)
    few = np.zeros(4, ">u2")
    np.any(x, axis=0, out=few)
    assert np.array_equal(few, a.any(0))


@pytest.mark.parametrize("dtype", [">u4", ">i4", ">f4", ">u2", ">f8"])
def test_a_view_in_a_foreign_byte_order_is_refused(device: Device, dtype: str) -> None:
    x = device.asarray(random((3, 4), "u4"))
    with pytest.raises(DataTypeError, match=r"view: .*; expected the byte order of .*astype"):
        x.view(dtype)
    assert x.view(">u1").shape == (3, 16)
