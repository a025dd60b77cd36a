"""Sums of counts, `hamming`, `jaccard` and `cardinality` on a device: NumPy's, in one pass."""

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitlane
from bitlane import Array, BitlaneError, Device
from bitlane.arrays import Strided
from bitlane.errors import OutOfDeviceMemory, UnsupportedError
from bitlane_rtl.abi import Mode, Op
from support.host.arrays import INTEGERS, count_passes, link_of, model, random, same
from support.system.devices import DEFAULT, opened
from support.system.views import shapes, views


def test_logic_count_and_sum_are_one_command(device: Device) -> None:
    x, query = device.asarray(random((50, 64), "u1", 1)), device.asarray(random(64, "u1", 2))
    lines = bitlane.explain(bitlane.bit_count(x ^ query).sum(-1, np.uint32)).splitlines()
    assert lines[1].startswith("COUNT_XOR SUM  50 x 64 of 8 bits")
    assert lines[2].split()[:3] == ["fused", "1", "pass"]
    bitlane.hamming(x, query).get()
    assert [record.modes[2] for record in link_of(device).log] == [Mode.SUM]


def test_types_are_checked_against_the_bits_of_a_row(device: Device) -> None:
    x = device.asarray(random((3, 31), "u1"))
    assert bitlane.cardinality(x, dtype=np.uint8).dtype == np.uint8
    assert same(
        bitlane.cardinality(x, dtype="i8").get(),
        np.bitwise_count(x.get()).sum(axis=1, dtype=np.int64),
    )
    long = np.broadcast_to(device.asarray(np.zeros(1, np.uint64)), (1 << 26,))
    assert bitlane.cardinality(long, dtype=np.uint64).get() == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.__setitem__((0, 0), 200),
        lambda c: c[1:].__ior__(0x80),
        lambda c: np.copyto(c, np.full((2, 3), 9, np.uint8)),
    ],
)
def test_overwritten_counts_are_added_up_as_they_are(
    device: Device, change: Callable[[Array], Any]
) -> None:
    c = np.bitwise_count(device.asarray(random((2, 3), "u1")))
    c.get()
    pending, before = c.sum(), int(c.get().sum())
    assert count_passes(pending) == 4
    change(c)
    assert int(pending) == before
    assert int(c.sum()) == c.get().sum()


def test_another_library_may_change_counts() -> None:
    with opened(DEFAULT) as device:
        c = np.bitwise_count(device.asarray(np.array([3, 255], np.uint8)))
        shown = np.from_dlpack(c)
        shown[0] = 77
        assert int(c.sum()) == 85
        del shown, c
        gc.collect()


def test_counts_at_other_places_of_their_bytes_are_numbers(device: Device) -> None:
    c = device.bit_count(device.asarray(random(9, "u4")), np.uint32)
    for view in (c, c.view("u1")[1:-3].view("u4"), c.view("u1"), c.view("u2")[1::2]):
        assert same(view.sum().get(), np.asarray(view.get().sum()))


def test_sums_of_tests_of_sums(device: Device) -> None:
    """A test of a sum differs from a sum of tests of elements, into which it must not be merged."""
    a = random((3, 5, 7), "u1") & 1
    x = device.asarray(a)
    counts = np.count_nonzero(a, axis=0)
    assert bool(np.any(np.count_nonzero(x, axis=0))) == counts.any()
    nonzero = np.count_nonzero(np.count_nonzero(x, axis=0), axis=1)
    assert np.array_equal(nonzero.get(), np.count_nonzero(counts, axis=1))


# --- sums of any integers -------------------------------------------------------------------------


def expect_numpys(x: Array, a: NDArray[Any], axis: Any, **options: Any) -> None:
    """Compare the sums of ``x``, in type and in every bit, with those of ``a``."""
    sums = x.sum(axis=axis, **options)
    assert same(sums.get(), np.asarray(a.sum(axis=axis, **options)))


@pytest.mark.parametrize("kind", ["u1", "i2", "u4", "i8"])
def test_sums_are_taken_modulo_the_range_of_their_type(device: Device, kind: str) -> None:
    a = np.full(300, np.iinfo(kind).max, kind)
    a[::7] = np.iinfo(kind).min
    x = device.asarray(a)
    for dtype in INTEGERS:
        expect_numpys(x, a, None, dtype=dtype)
        expect_numpys(x[:1], a[:1], 0, dtype=dtype)
    out = np.zeros((), "i2")
    assert x.sum(out=out) is out
    assert out == a.sum(dtype="i2")


def test_repeated_elements_are_added_up_once() -> None:
    device = model()
    a = random((3, 1), "i4")
    wide = device.asarray(a).broadcast_to((2, 3, 1 << 60))
    expect = a.astype(object).sum(axis=1) << 60
    got = wide.sum(axis=(2, 0)).tolist()
    assert [(2 * x - y) % 2**64 for x, y in zip(expect, got, strict=True)] == [0, 0, 0]
    assert count_passes(wide.sum(axis=2)) == 33
    ones = device.asarray(np.ones(1, bool)).broadcast_to((1 << 40,))
    assert int(ones.sum()) == np.count_nonzero(ones).item() == 1 << 40


def test_bits_that_are_known_to_be_0_take_no_pass(device: Device) -> None:
    """Known also of counts and sums that are in memory."""
    a = random((6, 32), "u4")
    x, n = device.asarray(a), np.bitwise_count(a)
    c = bitlane.bit_count(x)
    bitlane.compute(c, k := c[1:].copy())
    assert count_passes(k.sum()) == count_passes(c.astype("u4").sum()) == 6
    assert int(k.sum()) == n[1:].sum()
    sums = (x & 7).sum(1)
    sums.get()
    assert count_passes(sums.sum()) == 8
    assert int(sums.sum()) == (a & 7).sum()


def test_columns_are_packed_unless_the_memory_is_short(device: Device) -> None:
    a = random((80, 200), "u1")
    x = device.asarray(a)
    expect_numpys(x[:, ::2], a[:, ::2], 0)
    assert count_passes(x.sum(0)) == 9
    held = device.asarray(random((device.driver.allocator.largest() - a.nbytes // 2,), "u1"))
    expect_numpys(x, a, 0)
    expect_numpys(x, a, 1)
    del held


def test_rows_are_packed_for_each_array_and_its_axes(device: Device) -> None:
    a, b = random((4, 5, 8), "u2", 1), random((4, 5, 8), "u2", 2)
    x, y = device.asarray(a), device.asarray(b)
    sums = [x.sum(0), y.sum(0), x.sum((0, 2)), x.sum(1), (x ^ y).sum((0, 2))]
    bitlane.compute(*sums)
    wanted = [a.sum(0), b.sum(0), a.sum((0, 2)), a.sum(1), (a ^ b).sum((0, 2))]
    assert all(same(got.get(), want) for got, want in zip(sums, wanted, strict=True))


def test_sums_whose_parts_exceed_the_memory_are_computed_one_after_another(device: Device) -> None:
    a = random((3, 1000), "u4")
    x = device.asarray(a)
    assert device.driver.geometry.memory_bytes < 32 * 4 * 1000
    expect_numpys(x, a, 0)
    y = x ^ 7
    sums = y.sum(0)
    bitlane.compute(y, sums)
    assert same(y.get(), a ^ np.uint32(7))
    assert same(sums.get(), (a ^ np.uint32(7)).sum(0))


def test_a_circuit_without_sums_says_so() -> None:
    x = model(modes=frozenset(Mode) - {Mode.SUM}).asarray(random(5, "u1"))
    with pytest.raises(UnsupportedError, match="without sums of COUNT"):
        x.sum().get()


SAME_CALLS: list[Callable[[Array], Any]] = [
    lambda x: x.sum(),
    lambda x: x.copy().sum(axis=0),
    lambda x: x.astype(np.uint32).sum(axis=1, keepdims=True),
    lambda x: x.astype(np.int8).sum(),
    lambda x: x.view(np.uint16).sum(-1),
    lambda x: x[::-1, 1::2].sum(dtype=np.uint8),
    lambda x: x.broadcast_to((2, *x.shape)).sum(axis=(0, 2)),
    lambda x: np.concatenate([x, x]).sum(0),
    lambda x: (x & 3).sum(),
    lambda x: x.sum(0).sum(),
    lambda x: np.count_nonzero(x, 1).sum(),
    lambda x: np.any(x) ^ np.all(x, 1),
    lambda x: bitlane.bit_count(x).sum(1),
    lambda x: bitlane.cardinality(x, dtype=np.uint8),
    lambda x: x.sum(dtype=float),
    lambda x: x < 3,
    lambda x: np.mean(x),
]


def alike(device: Device) -> list[Array]:
    """Return arrays of one type, shape and content that came about in all ways."""
    counts = device.bit_count(device.asarray(random((4, 6), "u2")))
    n = counts.get()
    stored, pending = device.asarray(np.zeros_like(n)), counts ^ 0
    bitlane.bit_count(device.asarray(random((4, 6), "u2")), out=stored)
    written = bitlane.bit_count(device.asarray(np.zeros((4, 6), np.uint8)))
    written.get()
    written[...] = n
    fresh = bitlane.bit_count(device.asarray(random((4, 6), "u2")))
    casts = counts.astype("u8").astype("u1")
    copied = counts.copy()
    copied.get()
    gaps = np.zeros((4, 12), np.uint8)
    gaps[:, ::2] = n
    strided = device.asarray(gaps)[:, ::2].copy()
    return [device.asarray(n), counts, stored, pending, written, fresh, casts, copied, strided]


@pytest.mark.parametrize("call", SAME_CALLS)
def test_arrays_alike_accept_the_same_calls(device: Device, call: Callable[[Array], Any]) -> None:
    results = []
    for x in alike(device):
        try:
            result = call(x)
        except BitlaneError as error:
            results.append((type(error), str(error)))
        else:
            got = result.get()
            results.append((got.dtype, got.tolist()))
    assert len(results) == 9
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("kind", ["i2", pytest.param("i8", marks=pytest.mark.slow), "?"])
def test_rows_of_any_length_are_cut(kind: str) -> None:
    device = model(memory_bytes=1 << 20, length_bits=12)
    a = random((3, 2, 4999 // np.dtype(kind).itemsize), "u1").astype(kind)
    x = device.asarray(a)
    for axis in (2, (1, 2), (0, 2), None, 0):
        expect_numpys(x, a, axis)
        expect_numpys(x ^ x[0], a ^ a[0], axis)
        assert np.array_equal(np.count_nonzero(x, axis).get(), np.count_nonzero(a, axis))
    assert int((x & 1).sum(2).sum()) == (a & 1).sum()
    assert same(bitlane.cardinality(x).get(), np.bitwise_count(a).sum(-1, dtype="u4"))
    counts = np.bitwise_count(a).sum(-1) if kind != "?" else a.sum(-1)
    assert np.array_equal(bitlane.hamming(x, x ^ x, dtype="u8").get(), counts)


def test_sums_wait_with_the_operations_on_them(device: Device) -> None:
    a, b = random((4, 5, 6), "i2", 1), random(6, "i8", 2)
    x, y = device.asarray(a), device.asarray(b)
    first = x.sum(0)
    both = (first ^ y).sum(1)
    assert first.pending
    assert bitlane.explain(both).endswith("host       adds up 800 sums")
    z = x[0].astype("i8") ^ both.sum()
    bitlane.compute(z, both)
    sums = (a.sum(0) ^ b).sum(1)
    assert same(both.get(), sums)
    assert same(z.get(), a[0] ^ sums.sum())
    assert same(first.get(), a.sum(0))
    x[...] = first.sum(0)
    assert same(x.get(), np.broadcast_to(a.sum((0, 1)), a.shape).astype("i2"))
    x ^= (x ^ x).sum() == 0
    y[1:] = y.sum()
    assert same(y.get(), np.array([b[0], *[b.sum()] * 5]))


def test_memory_is_given_back_also_if_the_sums_do_not_fit() -> None:
    device = model(memory_bytes=1 << 13)
    a = random(5000, "u1")
    x = device.asarray(a)
    free = device.driver.allocator.largest()
    assert int(x.sum()) == a.sum()
    y = x.sum().broadcast_to((1000,)) ^ 1
    with pytest.raises(OutOfDeviceMemory):
        y.get()
    del y
    assert device.driver.allocator.largest() == free


@given(st.data(), shapes(200), st.sampled_from(INTEGERS), st.sampled_from(range(4)))
def test_any_layout_of_numbers(
    data: st.DataObject, shape: tuple[int, ...], dtype: str, circuit: int
) -> None:
    view = data.draw(views(shape, dtype))
    axes = data.draw(
        st.one_of(st.none(), st.sets(st.sampled_from(range(len(shape))))) if shape else st.none()
    )
    axis = None if axes is None else tuple(axes)
    content = random(view.size, "u1", 3)
    device = model(**CIRCUITS[circuit])
    strided = Strided(shape, view.strides, np.dtype(dtype).itemsize, view.offset)
    value = device.asarray(content)._value.view(strided, np.dtype(dtype))
    expect_numpys(Array(value), replace(view, dtype=dtype).of(content), axis)


CIRCUITS: list[dict[str, Any]] = [
    {},
    {"modes": {Mode.DENSE, Mode.SUM}, "loops": 1},
    {"data_bytes": 4, "length_bits": 12},
    {"ops": frozenset(Op) - {Op.COUNT_AND, Op.COUNT_XOR}},
]
