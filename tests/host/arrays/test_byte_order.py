"""Types of big-endian bytes are read by value: no call mistakes the order of the bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane import Array, DataTypeError, Device
from bitlane import array_api as xp
from support.host.arrays import random

BIG: dict[str, Callable[[Device, NDArray[Any]], tuple[Any, Any]]] = {
    "asarray": lambda d, a: (d.asarray(a.astype(">u4")), a),
    "asarray as": lambda d, a: (d.asarray(a, dtype=">u4"), a),
    "asarray of an array as": lambda d, a: (d.asarray(d.asarray(a), dtype=">u4"), a),
    "array_api.asarray": lambda d, a: (xp.asarray(a, dtype=np.dtype(">u4"), device=d), a),
    "empty": lambda d, a: (xp.empty(a.shape, dtype=np.dtype(">u4"), device=d) & 0, a & 0),
    "zeros": lambda d, a: (xp.zeros(a.shape, dtype=np.dtype(">u4"), device=d), a & 0),
    "ones": lambda d, a: (xp.ones(a.shape, dtype=np.dtype(">u4"), device=d), a & 0 | 1),
    "full": lambda d, a: (xp.full((3, 4), 258, dtype=np.dtype(">u4"), device=d), a & 0 | 258),
    "full of an element": lambda d, a: (
        xp.full((3, 4), a[1, 2].astype(">u4"), device=d),
        a & 0 | a[1, 2],
    ),
    "full_like": lambda d, a: (xp.full_like(d.asarray(a), 258, dtype=np.dtype(">u4")), a & 0 | 258),
    "eye": lambda d, a: (xp.eye(3, 4, dtype=np.dtype(">u4"), device=d), np.eye(3, 4, dtype="u4")),
    "arange": lambda d, a: (
        xp.arange(300, dtype=np.dtype(">u4"), device=d),
        np.arange(300, dtype="u4"),
    ),
    "linspace": lambda d, a: (
        xp.linspace(0, 300, 4, dtype=np.dtype(">u4"), device=d),
        np.linspace(0, 300, 4, dtype="u4"),
    ),
    "astype": lambda d, a: (d.asarray(a).astype(">u4"), a),
    "astype without copy": lambda d, a: (d.asarray(a).astype(">u4", copy=False), a),
    "astype of others": lambda d, a: (
        d.asarray(a.astype(">i2")).astype(">u4"),
        a.astype("i2").astype("u4"),
    ),
    "array_api.astype": lambda d, a: (xp.astype(d.asarray(a), np.dtype(">u4")), a),
    "counts": lambda d, a: (
        d.bit_count(d.asarray(a), dtype=">u4"),
        np.bitwise_count(a).astype("u4"),
    ),
    "counts of the host's": lambda d, a: (
        d.bit_count(a.astype(">u4"), dtype=">u4"),
        np.bitwise_count(a).astype("u4"),
    ),
    "sum": lambda d, a: (
        d.bit_count(d.asarray(a)).sum(0, dtype=">u4"),
        np.bitwise_count(a).sum(0, dtype="u4"),
    ),
    "np.sum": lambda d, a: (
        np.sum(d.bit_count(d.asarray(a)), 0, dtype=">u4"),
        np.bitwise_count(a).sum(0, dtype="u4"),
    ),
    "np.add.reduce": lambda d, a: (
        np.add.reduce(d.bit_count(d.asarray(a)), 0, dtype=">u4"),
        np.bitwise_count(a).sum(0, dtype="u4"),
    ),
    "cardinality": lambda d, a: (
        d.cardinality(d.asarray(a), axis=0, dtype=">u4"),
        np.bitwise_count(a).sum(0, dtype="u4"),
    ),
    "hamming of the host's": lambda d, a: (
        d.hamming(a.astype(">u4"), a[0].astype(">u4"), axis=0, dtype=">u4"),
        np.bitwise_count(a ^ a[0]).sum(0, dtype="u4"),
    ),
    "operand": lambda d, a: (d.asarray(a) ^ a[::-1].astype(">u4"), a ^ a[::-1]),
    "number": lambda d, a: (d.asarray(a) ^ a[1, 2].astype(">u4"), a ^ a[1, 2]),
    "reflected": lambda d, a: (a[::-1].astype(">u4") ^ d.asarray(a), a ^ a[::-1]),
    "shift": lambda d, a: (d.asarray(a) << (a[0] % 9).astype(">u4"), a << a[0] % 9),
    "comparison": lambda d, a: (d.asarray(a) == a[::-1].astype(">u4"), a == a[::-1]),
    "comparison with one": lambda d, a: (d.asarray(a) == a[1, 2].astype(">u4"), a == a[1, 2]),
    "comparison of floats": lambda d, a: (
        d.asarray(a.astype("f4")) == a[1, 2].astype(">f4"),
        a.astype("f4") == a[1, 2].astype("f4"),
    ),
    "comparison of arrays of floats": lambda d, a: (
        d.asarray(a.astype("f4")) == a.astype(">f4"),
        a == a,
    ),
    "where": lambda d, a: (np.where(d.asarray(a > 99), a.astype(">u4"), 7), np.where(a > 99, a, 7)),
    "concatenate": lambda d, a: (
        np.concatenate([d.asarray(a), a.astype(">u4")]),
        np.concatenate([a, a]),
    ),
    "stack": lambda d, a: (np.stack([a.astype(">u4"), d.asarray(a)]), np.stack([a, a])),
    "index": lambda d, a: (d.asarray(a)[np.array([2, 0], ">i8")], a[[2, 0]]),
    "take": lambda d, a: (np.take(d.asarray(a), np.array([2, 0], ">i4"), 0), a[[2, 0]]),
    "repeat": lambda d, a: (
        np.repeat(d.asarray(a), np.array([2, 0, 1], ">u2"), 0),
        np.repeat(a, [2, 0, 1], 0),
    ),
    "roll": lambda d, a: (np.roll(d.asarray(a), np.array(1, ">i8"), 0), np.roll(a, 1, 0)),
    "assigned": lambda d, a: (_assigned(d, a, ..., a[::-1].astype(">u4")), a[::-1].copy()),
    "assigned to a part": lambda d, a: (
        _assigned(d, a, slice(None, None, -1), a.astype(">u4")),
        a[::-1].copy(),
    ),
    "one assigned": lambda d, a: (_assigned(d, a, ..., a[1, 2].astype(">u4")), a & 0 | a[1, 2]),
    "scattered": lambda d, a: (_assigned(d, a, [2, 1, 0], a.astype(">u4")), a[::-1].copy()),
    "copied to": lambda d, a: (_copied(d, a, a[::-1].astype(">u4")), a[::-1].copy()),
}
"""Calls with types of big-endian bytes, and the results that they have, in the native order."""


def _assigned(device: Device, a: NDArray[Any], key: Any, value: Any) -> Array:
    x = device.asarray(a)
    x[key] = value
    return x


def _copied(device: Device, a: NDArray[Any], value: Any) -> Array:
    x = device.asarray(a)
    np.copyto(x, value)
    return x


@pytest.mark.parametrize("name", BIG)
def test_a_foreign_byte_order_changes_no_value(device: Device, name: str) -> None:
    got, expected = BIG[name](device, random((3, 4), "u4"))
    if isinstance(got, Array):
        got = got.get()
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
