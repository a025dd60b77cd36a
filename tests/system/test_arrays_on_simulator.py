"""Operators and searches on the simulated circuit: any overlap, all lengths, tiles, speed."""

from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitlane
from bitlane.demo import digits
from bitlane_rtl.abi import Op
from support.host.arrays import INTEGERS, TYPES, random, same
from support.host.indexes import nearest
from support.seeds import examples
from support.system.devices import (
    DEFAULT,
    NARROW,
    link_of,
    noise,
    opened,
    resident_bytes,
    simulator_of,
)
from support.system.views import ViewOf, answer, shapes, views

METHODS = {
    Op.NOT: "bit_not",
    Op.AND: "bit_and",
    Op.OR: "bit_or",
    Op.XOR: "bit_xor",
    Op.SHIFT_LEFT: "bit_shift_left",
    Op.SHIFT_RIGHT: "bit_shift_right",
    Op.COUNT: "bit_count",
}
SHIFTS = (Op.SHIFT_LEFT, Op.SHIFT_RIGHT)


@pytest.fixture(scope="module")
def narrow() -> Iterator[bitlane.Device]:
    with opened(NARROW) as device:
        yield device


def call(device: bitlane.Device, op: Op, *operands: Any, out: Any = None) -> NDArray[Any]:
    result: NDArray[Any] = getattr(device, METHODS[op])(*operands, out=out)
    return result


def native(array: NDArray[Any]) -> NDArray[Any]:
    return np.array(array, array.dtype.newbyteorder("="), order="C")


def small_counts(block: NDArray[np.uint8], view: ViewOf) -> None:
    """Replace most elements of a view by counts from 0 to three times the element's width."""
    counts = view.of(block)
    bound = 3 * 8 * counts.itemsize
    # One element in seven keeps its value, which may be huge or negative.
    keep = counts.astype(counts.dtype.newbyteorder("=")) % 7 == 0
    counts[...] = np.where(keep, counts, np.abs(counts % bound))


@examples(4)
@given(data=st.data(), op=st.sampled_from(sorted(METHODS)), seed=st.integers(0, 2**32 - 1))
def test_any_views_of_one_block(
    device: bitlane.Device, data: st.DataObject, op: Op, seed: int
) -> None:
    # Operands and output share a block and overlap in any way. The result is as if the operands
    # had been copied first, and bytes between the elements do not change.
    dtype = data.draw(st.sampled_from(INTEGERS if op in SHIFTS else TYPES))
    shape = data.draw(shapes())
    out_type = data.draw(st.sampled_from(["u1", "u4"])) if op.counts else dtype
    sources = [data.draw(views(shape, dtype)) for _ in range(2 if op.reads_b else 1)]
    target = data.draw(views(shape, out_type, output=True))
    if out_type == dtype and data.draw(st.integers(0, 3)) == 0:
        # In place.
        sources[data.draw(st.integers(0, len(sources) - 1))] = target
    block = noise(max(view.size for view in [*sources, target]), seed)
    if op in SHIFTS:
        small_counts(block, sources[1])
    want = block.copy()
    operands = [native(view.of(block)) for view in sources]
    second = operands[1] if op.reads_b else None
    target.of(want)[...] = expected = answer(op, operands[0], second, out_type)
    replay = f"{device.description}: {op.name}, noise of seed {seed}, {sources} to {target}"

    fresh = (
        device.bit_count(sources[0].of(block), out_type)
        if op.counts
        else call(device, op, *(view.of(block) for view in sources))
    )
    assert same(fresh, expected), f"a result of its own: {replay}"
    out = target.of(block)
    assert call(device, op, *(view.of(block) for view in sources), out=out) is out
    different = np.flatnonzero(block != want)
    assert different.size == 0, f"bytes {different[:8]} of the block: {replay}"


@pytest.mark.parametrize("dtype", INTEGERS)
def test_counts_of_the_width_and_more_saturate(device: bitlane.Device, dtype: str) -> None:
    width = 8 * np.dtype(dtype).itemsize
    limits = np.iinfo(dtype)
    counts = {0, 1, width - 1, width, width + 1, 2 * width, limits.max - 1, limits.max}
    if limits.min < 0:
        counts |= {-1, -width, limits.min}
    b = np.array([n for n in sorted(counts) if n <= limits.max], dtype)
    a = np.append(random(29, dtype), np.array([limits.min, limits.max, 0, 1], dtype))
    for op in SHIFTS:
        got = call(device, op, a[:, None], b)
        assert same(got, answer(op, a[:, None], b)), (op.name, b)
    # Negative elements become -1, all others 0.
    gone = device.bit_shift_right(a, limits.max)
    assert same(gone, np.where(a < 0, -1, 0).astype(dtype))
    assert not device.bit_shift_left(a, limits.max).any()


@pytest.mark.parametrize("count", [2**16 - 1, 2**16, 2**16 + 1])
def test_lengths_around_a_power_of_two(device: bitlane.Device, count: int) -> None:
    for dtype in ("u1", "i2"):
        a, b = random(count, dtype, count), random(count, dtype, 7)
        assert same(device.bit_xor(a, b), np.bitwise_xor(a, b))
        # Gathered in reverse; the inner loop alone has 2**16 steps.
        assert same(device.bit_not(a[::-1]), np.invert(a[::-1]))
        assert same(device.bit_and(a, b[:1]), np.bitwise_and(a, b[:1]))
    a = random(2 * count, "u1", 3)
    assert same(device.bit_not(a[::2]), np.invert(a[::2]))


def test_tensors_larger_than_the_memory_are_tiled(narrow: bitlane.Device) -> None:
    memory = simulator_of(narrow).memory.size
    assert memory == 256 * 1024
    a, b = random((300, 401), "u4", 1), random((300, 401), "u4", 2)
    assert a.nbytes > memory
    assert same(narrow.bit_xor(a, b), np.bitwise_xor(a, b))
    assert same(narrow.bit_not(a.T[::-1]), np.invert(a.T[::-1]))
    assert same(narrow.bit_or(a, b[:1]), np.bitwise_or(a, b[:1]))
    assert same(narrow.bit_count(a, "u4"), answer(Op.COUNT, a, None, "u4"))
    # Overlapping fragments: each row replaces the row before it.
    want = a.copy()
    want[:-1] = np.bitwise_and(a[1:], b[1:])
    assert narrow.bit_and(a[1:], b[1:], out=a[:-1]) is not a
    assert same(a, want)
    in_place = a.copy()
    narrow.bit_xor(in_place, b, out=in_place)
    assert same(in_place, np.bitwise_xor(a, b))


def test_a_large_call_leaves_the_computers_memory_as_it_was() -> None:
    a = noise(1 << 23, seed=1)
    with opened(DEFAULT) as device:
        memory = simulator_of(device).memory
        before = resident_bytes(memory)
        assert same(device.bit_not(a), np.invert(a))
        # Operand and result would together take twice the size of ``a``, a huge page a fourth.
        assert resident_bytes(memory) - before < a.nbytes // 2


SIZE = 1 << 16
"""Bytes of each of the arrays that are compared."""

LEAST = 0.998
"""Beats a cycle on each of the two read ports, with start-up."""

RETIRED = 4
"""Cycles from the last response of the memory until the engine is idle."""


def test_arrays_are_compared_as_fast_as_they_are_read() -> None:
    with opened(DEFAULT) as device:
        a = noise(SIZE, 1)
        x, y = device.asarray(a), device.asarray(a)
        driver = device.driver
        driver.clear_counters()
        bitlane.compute(x ^ y)
        logic = driver.counters()["BUSY_CYCLES"]
        driver.clear_counters()
        assert np.array_equal(x, y)
        counters = driver.counters()
        del x, y
    beats = SIZE // driver.geometry.data_bytes
    assert counters["A_BEATS"] == counters["B_BEATS"] == beats
    assert counters["BUSY_CYCLES"] <= logic
    assert beats / (counters["BUSY_CYCLES"] - RETIRED) >= LEAST


# --- searches -------------------------------------------------------------------------------------


def expect(got: tuple[NDArray[Any], ...], expected: tuple[NDArray[Any], ...]) -> None:
    for one, other in zip(got, expected, strict=True):
        assert same(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["", "&memory=64KiB", "&memory=64KiB&ports=1&width=32"])
def test_an_array_finds_the_same(memory: str) -> None:
    rows = noise(9000 * 7, 1).reshape(-1, 7) & 3
    queries = noise(21 * 7, 2).reshape(-1, 7) & 3
    url = f"sim:compiled?search=3,64,8,4{memory}&latency=9&stall=0.3&seed=6"
    with opened(url) as device:
        for k in (1, 4, 5):
            expect(device.search(queries, rows, k), nearest(queries, rows, k))
        before = link_of(device).cycles
        device.search(queries[:8], rows[:3000], 4)
        by_array = link_of(device).cycles - before
        device.search(queries[:8], rows[:3000], 5)
        assert by_array < link_of(device).cycles - before - by_array


def test_what_the_memory_does_not_hold_is_streamed() -> None:
    rows, queries = noise(6000 * 64, 1).reshape(-1, 64), noise(3 * 64, 2).reshape(-1, 64)
    with opened("sim:compiled?width=32&ports=1&memory=256KiB") as device:
        expect(device.search(queries, rows, 4), nearest(queries, rows, 4))


@pytest.mark.slow
def test_digits_have_the_neighbours_that_faiss_finds() -> None:
    found = digits.load()
    database, queries = found.rows[: -digits.HELD_OUT], found.rows[-digits.HELD_OUT :]
    index = faiss.IndexBinaryFlat(64)
    index.add(database)
    with opened(DEFAULT) as device:
        own = bitlane.BinaryIndex(device, 64)
        own.add(database)
        expect(own.search(queries, 20), index.search(queries, 20))
        limits, distances, indices = index.range_search(queries, 6)
        ranges = own.range_search(queries, 6)
        own.reset()
    expect(ranges, (limits, distances.astype(np.int32), indices))


def test_rows_each_nearer_than_all_before_are_found_in_order() -> None:
    rows = np.packbits(np.tri(256, dtype=bool)[::-1], axis=1)
    query = np.zeros((1, 32), np.uint8)
    with opened(DEFAULT) as device:
        distances, indices = device.search(query, rows, 20)
    assert distances.tolist() == [list(range(1, 21))]
    assert indices.tolist() == [list(range(255, 235, -1))]
