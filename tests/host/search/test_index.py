"""`BinaryIndex.search` and `Device.search`: what NumPy's sorting finds, wherever the rows are."""

import gc
import re
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitlane import BinaryIndex, Device, OutOfDeviceMemory, SearchError
from bitlane.search import results
from bitlane_rtl.abi import Mode, Op
from bitlane_rtl.configuration import Search
from support.host.arrays import link_of, model, random, same
from support.host.indexes import (
    ARRAY,
    METRICS,
    WIDE_ARRAY,
    all_distances,
    answer,
    expect_equal,
    expect_found,
    index_of,
    sent,
    taken,
)
from support.seeds import examples, stride


@pytest.fixture
def device() -> Iterator[Device]:
    device = model(memory_bytes=1 << 16)
    yield device
    gc.collect()
    assert device.driver.allocator.pieces == 0


def test_a_search_copies_no_row_of_the_database(device: Device) -> None:
    rows = random((1 << 8, 1 << 12), "u1")
    device.search(rows[7:9], rows, 1)  # fills the caches that later searches share
    tracemalloc.start()
    try:
        expect_equal(
            device.search(rows[7:9], rows, 1), (np.zeros((2, 1), "i4"), np.array([[7], [8]]))
        )
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2 * rows.nbytes


# --- what is found ----------------------------------------------------------------------------


TIES = np.tile(random((3, 4), "u1"), (40, 1))
CLOSE = random((200, 8), "u1", 1) & random((200, 8), "u1", 3)
CLOSE[150:] = CLOSE[:50]
NONE = np.empty((0, 8), np.uint8)

DATABASES = {
    **{f"{size} bytes": (random((300, size), "u1"), random((7, size), "u1", 2)) for size in (1, 3)},
    **{
        f"{size} bytes": (random((200, size), "u1"), random((3, size), "u1", 2)) for size in (8, 64)
    },
    "ties": (TIES, np.concatenate([TIES[:2], np.zeros((1, 4), np.uint8)])),
    "close": (CLOSE, random((5, 8), "u1", 2)),
    "few": (CLOSE[:3], CLOSE[:3]),
    "no queries": (CLOSE[:20], NONE),
    "no rows": (NONE, CLOSE[:4]),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", DATABASES)
def test_a_search_finds_what_sorting_does(device: Device, name: str, metric: str) -> None:
    rows, queries = DATABASES[name]
    index = index_of(rows, device=device, metric=metric)
    distances = all_distances(queries, rows, metric)
    radii = [0, np.inf]
    if distances.size:
        radii += [np.median(distances), np.max(distances), np.sort(distances)[0, :6][-1]]
    radii = [float(np.ceil(x) if metric == "hamming" and x < np.inf else x) for x in radii]
    limits: list[dict[str, Any]] = [{}, *({"k": k} for k in (1, 5, 41, 119, 120))]
    limits += [{"radius": radius} for radius in radii]
    limits += [{"k": 20, "radius": radius} for radius in radii]
    for each in limits:
        expect_found(device, queries, rows, metric=metric, **each)
        expect_found(index, queries, rows, **each)
    for radius in radii:
        expect_equal(index.range_search(queries, radius), index.search(queries, radius=radius))


def test_what_is_found_has_its_types_and_shapes(device: Device) -> None:
    rows = random((30, 8), "u1")
    distances, indices = device.search(rows[:2], rows)
    assert (distances.shape, distances.dtype) == ((2, 10), np.int32)
    assert (indices.shape, indices.dtype) == ((2, 10), np.int64)
    assert indices[:, 0].tolist() == [0, 1]
    distances, indices = BinaryIndex(device, 64).search(rows[:3], 2)
    assert distances.tolist() == [[2**31 - 1] * 2] * 3
    assert indices.tolist() == [[-1, -1]] * 3


@pytest.mark.parametrize(
    ("metric", "rows", "radii"),
    [
        ("hamming", [0, 1, 3], [(10**400, 3), (np.inf, 3), (2.0, 2), (np.int8(2), 2)]),
        ("hamming", [0, 1, 3], [(np.float32(1), 1)]),
        ("jaccard", [1, 3, 4], [(10**400, 3), (-(10**400), 0), (0.6, 2), (-1, 0)]),
        ("jaccard", [1, 3, 4], [(np.float32(0.5), 1)]),
    ],
)
def test_a_radius_is_a_number_of_any_type(
    device: Device, metric: str, rows: list[int], radii: list[tuple[Any, int]]
) -> None:
    """A radius in bits is a whole number; a radius of similarities is any number."""
    database = np.array(rows, np.uint8)[:, None]
    for radius, found in radii:
        got = device.search(database[:1], database, radius=radius, metric=metric)
        assert len(got[2]) == found, radius


LEAN = {"modes": st.just(frozenset({Mode.DENSE})), "loops": st.just(1)}


@pytest.mark.parametrize(
    "circuit", [{}, {"search": ARRAY, "length_bits": 12}], ids=["sums", "array"]
)
@examples(0.4)
@given(
    st.sampled_from([1 << 11, 1 << 12, 1 << 14]),
    st.fixed_dictionaries({"eager": st.booleans()}, optional=LEAN),
    st.lists(st.integers(0, 90), max_size=4),
    st.tuples(st.integers(1, 17), st.integers(0, 20), st.integers(1, 20), st.integers(0, 99)),
    st.sampled_from(METRICS),
)
def test_any_number_of_rows_on_any_memory(
    circuit: Any, memory: int, options: Any, added: list[int], numbers: Any, metric: str
) -> None:
    row_bytes, queries, k, seed = numbers
    if circuit:
        options, k = {"eager": options["eager"]}, k % 6 + 1
    index = BinaryIndex(
        model(memory_bytes=memory, **circuit, **options), 8 * row_bytes, metric=metric
    )
    rows = random((sum(added), row_bytes), "u1", seed) & 3
    for last, count in zip(np.cumsum(added), added, strict=True):
        index.add(rows[last - count : last])
    assert index.ntotal == len(index) == len(rows)
    asked = random((queries, row_bytes), "u1", seed + 1) & 3
    expect_found(index, asked, rows, k=k)
    expect_found(index, asked, rows, radius=1 if metric == "hamming" else 0.5)


# --- the search array -------------------------------------------------------------------------


A200, A700 = random((200, 16), "u1"), random((700, 16), "u1")
B20, LONG = random((20, 16), "u1", 2), random((30, 17), "u1", 3)
A700[500:503] = B20[0]
RADIUS = float(answer(B20[:2], A200[:30], k=4)[0][0, 2])


@pytest.mark.parametrize(
    ("commands", "queries", "rows", "options"),
    [
        (1, B20[:8], A200, {"k": 4}),
        (3, B20, A200[:50], {"k": 3}),  # of 8 queries each
        (3, B20[:2], A700, {"k": 4}),  # of a run each
        (1, B20[:2], A200[:30], {"k": 4, "radius": RADIUS}),
        (0, B20[:2], A200[:30], {"k": 5}),
        (0, B20[:2], A200[:30], {"radius": 60}),
        (0, B20[:2], A200[:30], {"k": 2, "metric": "jaccard"}),
        (0, LONG[:2], LONG, {"k": 2}),
    ],
)
@pytest.mark.parametrize("eager", [False, True])
def test_a_search_is_one_command_a_batch_and_piece(
    commands: int, queries: Any, rows: Any, options: Any, eager: bool
) -> None:
    """Searches that the array of comparers does not offer are computed by sums."""
    device = model(search=ARRAY, memory_bytes=1 << 16, length_bits=12, eager=eager)
    expect_found(device, queries, rows, **options)
    log = link_of(device).log
    assert [record.op for record in log].count(Op.SEARCH) == commands
    assert {record.modes[2] for record in log if record.op != Op.SEARCH} <= {Mode.SUM}
    assert len(log) == commands or not commands


def test_a_batch_of_sums_is_one_command(device: Device) -> None:
    rows = random((100, 64), "u1")
    device.search(rows[:9], rows)
    (record,) = link_of(device).log
    assert (Op(record.op), record.modes[2], record.counts) == (Op.COUNT_XOR, Mode.SUM, [100, 9])


def test_the_sizes_of_the_array_are_read_from_its_register() -> None:
    device = model(search=Search(units=5, row_bits=512, queries=512, nearest=16))
    array = device.driver.geometry.search
    assert array is not None
    assert (array.units, array.row_bytes, array.queries, array.nearest) == (5, 64, 512, 16)
    expect_found(device, random((1, 64), "u1"), random((1, 64), "u1"), k=1)


# --- where the rows are -----------------------------------------------------------------------


def test_rows_are_sent_once_and_stay(device: Device) -> None:
    rows = random((500, 64), "u1")
    index = index_of(rows, device=device)
    assert sent(device) == rows.nbytes
    for _ in range(2):
        expect_found(index, rows[:3], rows, k=2)
        assert sent(device) == 3 * 64


def test_rows_that_the_memory_does_not_hold_are_sent_for_each_search(device: Device) -> None:
    rows = random((1500, 64), "u1")
    index = index_of(rows[:700], device=device)
    index.add(rows[700:])
    rows_there = rows.copy()
    rows[:] = 0
    sent(device)
    for _ in range(2):
        expect_found(index, rows_there[-3:], rows_there, k=4)
        assert rows.nbytes / 3 < sent(device) < rows.nbytes


def test_rows_keep_their_numbers_when_memory_becomes_free(device: Device) -> None:
    rows = random((1000, 64), "u1")
    held = device.asarray(random(40_000, "u1"))
    index = index_of(rows[:600], device=device)
    held.free()
    index.add(rows[600:])
    expect_found(index, rows[598:602], rows, k=2)


def test_a_tile_is_sent_while_the_one_before_is_compared() -> None:
    rows = random((400, 64), "u1")
    expect_found(model(memory_bytes=1 << 13, eager=False), rows[7:9], rows, k=3)


def test_results_of_few_rows_and_many_queries_take_all_the_room() -> None:
    rows, queries = random((330, 16), "u1"), random((20, 16), "u1", 2)
    index = index_of(rows[:300], memory_bytes=1 << 14, metric="jaccard")
    index.add(rows[300:])
    link_of(index.device).log.clear()
    expect_found(index, queries, rows, k=3)
    assert len(link_of(index.device).log) == 22


def test_a_file_is_searched_in_pieces(device: Device, tmp_path: Path) -> None:
    rows = np.memmap(tmp_path / "rows", np.uint8, "w+", shape=(1500, 64))
    rows[:] = random((1500, 64), "u1")
    index = index_of(rows, device=device)
    expect_found(index, rows[17:19], rows, k=3)
    rows[1499] = rows[17]
    assert index.search(rows[17:18], 2)[1].tolist() == [[17, 1499]]
    expect_found(device, rows[17:19], rows, k=3)


def test_rows_that_come_one_by_one_share_memory(device: Device) -> None:
    rows = random((200, 8), "u1")
    index = BinaryIndex(device, 64)
    for row in rows:
        index.add(row[None])
    assert device.driver.allocator.pieces < 25
    expect_found(index, rows[:5], rows, k=5)


def test_an_index_that_is_reset_is_empty_and_can_be_filled_again(device: Device) -> None:
    rows = random((40, 8), "u1")
    index = index_of(rows, device=device)
    index.reset()
    assert index.ntotal == device.driver.allocator.pieces == 0
    index.add(rows[20:])
    expect_found(index, rows[:2], rows[20:], k=2)


def test_memory_is_left_for_others(device: Device) -> None:
    index = index_of(random((1500, 64), "u1"), device=device)
    a = random((100, 8), "u1")
    assert same(device.bit_not(a), ~a)
    assert device.driver.allocator.largest() >= device.driver.geometry.memory_bytes // 5
    assert taken(device) < index.ntotal * 64


def test_arrays_on_the_device_and_views_are_rows_too(device: Device) -> None:
    rows = random((50, 8), "u1")
    there = device.asarray(rows)
    expect_equal(device.search(there[:2], there, 3), answer(rows[:2], rows, k=3))
    expect_found(device, rows[:2, ::-1], rows[:, ::-1], k=3)


def test_threads_take_turns(device: Device) -> None:
    rows = random((300, 8), "u1")
    index = index_of(rows, device=device)
    with ThreadPoolExecutor(4) as pool:
        searches = [pool.submit(index.search, rows[:9], 4) for _ in range(4)]
        index.add(rows)
    both = [answer(rows[:9], each, k=4) for each in (rows, np.tile(rows, (2, 1)))]
    for search in searches:
        found = search.result()
        assert any(same(found[0], x) and same(found[1], y) for x, y in both)


# --- little memory ----------------------------------------------------------------------------


def test_k_that_the_memory_does_not_hold_is_refused_before_any_is_allocated(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = random((900, 8), "u1")
    index = index_of(rows, device=device)
    monkeypatch.setattr(results, "memory_bytes", lambda: 3 * 12 * 500 * 800)
    link_of(device).traffic.clear()
    many = np.repeat(rows, 2, axis=0)[:500]
    tracemalloc.start()
    try:
        for call in (
            lambda: index.search(many, 801),
            lambda: device.search(many, rows, 801),
            lambda: index.assign(many, 801),
        ):
            with pytest.raises(SearchError, match=r"k: 801 rows for each of 500 .* 800, "):
                call()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert link_of(device).traffic == []
    expect_found(index, many, rows, k=800)


def test_the_memory_of_this_computer(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    whole = results.memory_bytes(limit)
    assert whole > 1 << 28
    for text, bytes_ in (("max\n", whole), ("123456\n", 123456)):
        limit.write_text(text)
        assert results.memory_bytes(limit) == bytes_


MOST = Search(units=3, row_bits=128, queries=8, nearest=64)
LEAST = 3 * 64 + 2 * 512
"""Bytes that a search on an array of this size needs."""


@pytest.mark.parametrize(
    ("row_bytes", "circuit", "sizes"),
    [
        *((size, {}, range(256, 6000, 192)) for size in (16, 100, 300)),
        *((size, {"modes": {Mode.DENSE}, "loops": 1}, range(256, 6000, 192)) for size in (16, 100)),
        (300, {"modes": {Mode.DENSE}, "loops": 1}, range(256, 6000, 192)),
        (16, {"search": MOST, "eager": False}, range(LEAST - 64, 2 * LEAST, 64)),
    ],
)
def test_any_room_for_a_query_and_rows_will_do(row_bytes: int, circuit: Any, sizes: range) -> None:
    """A message that tells what is expected is right to the byte."""
    rows, enough = random((40, row_bytes), "u1", 1), False
    array, metric = "search" in circuit, "hamming" if "search" in circuit else "jaccard"
    for free in sizes if array else sizes[:: stride(5)]:
        device = model(memory_bytes=1 << 14, **circuit)
        held = device.asarray(random((1 << 14) - free, "u1"))
        room = device.driver.allocator.largest()
        try:
            expect_found(device, rows[:5], rows, k=3, metric=metric)
        except OutOfDeviceMemory as error:
            wanted = re.search(rf"{room} bytes .*expected (\d+) for", str(error))
            assert wanted
            assert room < int(wanted[1])
            assert int(wanted[1]) == LEAST or not array
            assert not enough, f"{room} bytes free"
        else:
            enough = True
            assert room >= LEAST or not array
            assert {Op(each.op) for each in link_of(device).log} == {Op.SEARCH} or not array
        assert held.size
    assert enough


@pytest.mark.parametrize("options", [{}, {"search": WIDE_ARRAY}], ids=["sums", "array"])
def test_a_memory_without_room_for_a_query_is_named(options: Any) -> None:
    device = model(memory_bytes=1 << 11, **options)
    held = device.asarray(random(1900, "u1"))
    with pytest.raises(OutOfDeviceMemory, match="bytes of free device memory; expected"):
        device.search(random((2, 64), "u1"), random((2, 64), "u1"), 2)
    assert held.size


def test_an_index_says_what_it_is(device: Device) -> None:
    index = index_of(random((5, 8), "u1"), device=device, metric="jaccard")
    assert repr(index).startswith("<bitlane.BinaryIndex: 5 rows of 64 bits, jaccard, on <bitlane")
    assert (index.dimension, index.metric) == (64, "jaccard")
    assert (index.d, index.code_size, index.ntotal, index.is_trained) == (64, 8, 5, True)
