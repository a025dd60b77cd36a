"""`BinaryIndex` and `Device.search`: what NumPy's sorting finds, wherever the rows are."""

import gc
import re
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bitlane
from bitlane import BinaryIndex, BitlaneError
from bitlane.api.device import Device
from bitlane.errors import DataTypeError, LinkError, SearchError, ShapeError
from bitlane.search import results
from bitlane_rtl.abi import CONTROL_BASE, Mode, Op
from support.host.arrays import link_of, model, random, same
from support.host.neighbours import all_distances, nearest, within
from support.seeds import examples, stride

METRICS = ["hamming", "jaccard"]


@pytest.fixture
def device() -> Iterator[Device]:
    device = model(memory_bytes=1 << 16)
    yield device
    gc.collect()
    assert device.driver.allocator.pieces == 0


def expect(got: tuple[NDArray[Any], ...], expected: tuple[NDArray[Any], ...]) -> None:
    for one, other in zip(got, expected, strict=True):
        assert same(one, other)


def typed(radius: float, metric: str) -> float:
    """Return a radius near ``radius`` that ``metric`` takes."""
    return float(round(radius) if metric == "hamming" else radius)


def test_a_search_copies_no_row_of_the_database(device: Device) -> None:
    rows = random((1 << 8, 1 << 12), "u1")
    device.search(rows[7:9], rows, 1)  # fills the caches that later searches share
    tracemalloc.start()
    try:
        distances, indices = device.search(rows[7:9], rows, 1)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not distances.any()
    assert indices.tolist() == [[7], [8]]
    assert most < 2 * rows.nbytes


# --- what is found ----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("row_bytes", [1, 3, 8, 64])
def test_the_nearest_come_first(device: Device, metric: str, row_bytes: int) -> None:
    rows, queries = random((300, row_bytes), "u1", 1), random((7, row_bytes), "u1", 2)
    expect(device.search(queries, rows, 9, metric=metric), nearest(queries, rows, 9, metric))


@pytest.mark.parametrize("metric", METRICS)
def test_ties_go_to_the_lower_index(device: Device, metric: str) -> None:
    rows = np.tile(random((3, 4), "u1"), (40, 1))
    queries = np.concatenate([rows[:2], np.zeros((1, 4), np.uint8)])
    for k in (1, 5, 41, 119, 120):
        expect(device.search(queries, rows, k, metric=metric), nearest(queries, rows, k, metric))


def test_ten_are_found_unless_told_otherwise(device: Device) -> None:
    rows = random((30, 8), "u1")
    distances, indices = device.search(rows[:2], rows)
    assert (distances.shape, distances.dtype) == ((2, 10), np.int32)
    assert (indices.shape, indices.dtype) == ((2, 10), np.int64)
    assert indices[:, 0].tolist() == [0, 1]


@pytest.mark.parametrize("metric", METRICS)
def test_where_there_are_fewer_rows_the_index_is_minus_one(device: Device, metric: str) -> None:
    rows = random((3, 8), "u1")
    expect(device.search(rows, rows, 5, metric=metric), nearest(rows, rows, 5, metric))
    distances, indices = BinaryIndex(device, 64).search(rows, 2)
    assert distances.tolist() == [[2**31 - 1] * 2] * 3
    assert indices.tolist() == [[-1, -1]] * 3


@pytest.mark.parametrize("metric", METRICS)
def test_all_within_a_radius_are_found_in_order(device: Device, metric: str) -> None:
    rows, queries = random((200, 8), "u1", 1) & random((200, 8), "u1", 3), random((5, 8), "u1", 2)
    distances = all_distances(queries, rows, metric)
    for radius in (0, typed(np.median(distances), metric), float(distances.max()), np.inf):
        got = device.search(queries, rows, radius=radius, metric=metric)
        expect(got, within(queries, rows, radius, metric))


def test_a_radius_leaves_out_what_lies_on_it(device: Device) -> None:
    rows = np.array([[0], [1], [3], [7]], np.uint8)
    limits, distances, indices = device.search(rows[:1], rows, radius=2)
    assert (limits.tolist(), distances.tolist(), indices.tolist()) == ([0, 2], [0, 1], [0, 1])


@pytest.mark.parametrize("metric", METRICS)
def test_k_and_a_radius_give_the_nearest_within_it(device: Device, metric: str) -> None:
    rows, queries = random((200, 8), "u1", 1) & random((200, 8), "u1", 3), random((5, 8), "u1", 2)
    rows[150:] = rows[:50]
    index = BinaryIndex(device, 64, metric=metric)
    index.add(rows)
    distances, indices = nearest(queries, rows, 20, metric)
    for radius in (0, typed(np.median(distances), metric), float(distances[0, 5]), np.inf):
        beyond = distances >= radius
        expected = (
            np.where(beyond, 2**31 - 1 if metric == "hamming" else np.inf, distances),
            np.where(beyond, -1, indices),
        )
        expected = expected[0].astype(distances.dtype), expected[1]
        expect(device.search(queries, rows, k=20, radius=radius, metric=metric), expected)
        expect(index.search(queries, 20, radius=radius), expected)


def test_k_counts_beside_a_radius(device: Device) -> None:
    rows = np.zeros((3, 2), np.uint8)
    distances, indices = device.search(rows[:1], rows, k=1, radius=2)
    assert (distances.tolist(), indices.tolist()) == ([[0]], [[0]])
    distances, indices = device.search(rows[:1], rows, k=1, radius=0)
    assert (distances.tolist(), indices.tolist()) == ([[2**31 - 1]], [[-1]])
    for k in (0, 1.5):
        with pytest.raises(SearchError, match="k: "):
            device.search(rows[:1], rows, k=k, radius=2)  # type: ignore[arg-type]


def test_an_index_takes_a_radius_alone(device: Device) -> None:
    rows, queries = random((200, 8), "u1", 1), random((5, 8), "u1", 2)
    index = BinaryIndex(device, 64)
    index.add(rows)
    expect(index.search(queries, radius=30), within(queries, rows, 30))
    expect(index.search(queries, radius=30), index.range_search(queries, 30))
    expect(index.search(queries), nearest(queries, rows, 10))


def test_a_radius_of_bits_is_a_whole_number_of_any_type(device: Device) -> None:
    rows = np.array([[0], [1], [3]], np.uint8)
    for radius, found in [(10**400, 3), (np.inf, 3), (2.0, 2), (np.float32(1), 1), (np.int8(2), 2)]:
        assert len(device.search(rows[:1], rows, radius=radius)[2]) == found


def test_a_radius_of_similarities_may_be_any_number(device: Device) -> None:
    rows = np.array([[1], [3], [4]], np.uint8)
    for radius, found in [(10**400, 3), (-(10**400), 0), (np.float32(0.5), 1), (0.6, 2), (-1, 0)]:
        got = device.search(rows[:1], rows, radius=radius, metric="jaccard")
        assert len(got[2]) == found


def test_no_queries_find_nothing(device: Device) -> None:
    rows, none = random((20, 8), "u1"), np.empty((0, 8), np.uint8)
    expect(device.search(none, rows, 3), nearest(none, rows, 3))
    expect(device.search(none, rows, radius=3), within(none, rows, 3))
    expect(device.search(rows, none, radius=3), within(rows, none, 3))


def test_one_mask_over_all_changes_nothing(device: Device) -> None:
    rows, queries, mask = random((90, 8), "u1", 1), random((4, 8), "u1", 2), random(8, "u1", 3)
    expect(device.search(queries ^ mask, rows ^ mask), device.search(queries, rows))


DEVICES = st.fixed_dictionaries(
    {"memory_bytes": st.sampled_from([1 << 11, 1 << 12, 1 << 14]), "eager": st.booleans()},
    optional={"modes": st.just(frozenset({Mode.DENSE})), "loops": st.just(1)},
)


@examples(0.4)
@given(
    DEVICES,
    st.lists(st.integers(0, 90), max_size=4),
    *(st.integers(1, 9), st.integers(0, 12), st.integers(1, 20), st.integers(0, 99)),
    st.sampled_from(METRICS),
)
def test_any_number_of_rows_on_any_memory(
    options: Any, added: list[int], row_bytes: int, queries: int, k: int, seed: int, metric: str
) -> None:
    device = model(**options)
    index = BinaryIndex(device, 8 * row_bytes, metric=metric)
    rows = random((sum(added), row_bytes), "u1", seed) & 3
    start = 0
    for count in added:
        index.add(rows[start : start + count])
        start += count
    assert index.ntotal == len(index) == len(rows)
    asked = random((queries, row_bytes), "u1", seed + 1) & 3
    expect(index.search(asked, k), nearest(asked, rows, k, metric))
    radius = 1 if metric == "hamming" else 0.5
    expect(index.range_search(asked, radius), within(asked, rows, radius, metric))


# --- where the rows are -----------------------------------------------------------------------


def sent(device: Device) -> int:
    """Return the bytes written to the device's memory since the last call."""
    traffic = link_of(device).traffic
    size = sum(size for kind, at, size in traffic if kind == "write" and at < CONTROL_BASE)
    traffic.clear()
    return size


def test_rows_are_sent_once_and_stay(device: Device) -> None:
    rows = random((500, 64), "u1")
    index = BinaryIndex(device, 512)
    sent(device)
    index.add(rows)
    assert sent(device) == rows.nbytes
    for _ in range(2):
        expect(index.search(rows[:3], 2), nearest(rows[:3], rows, 2))
        assert sent(device) == 3 * 64


def test_a_batch_is_one_command(device: Device) -> None:
    rows = random((100, 64), "u1")
    device.search(rows[:9], rows)
    (record,) = link_of(device).log
    assert (Op(record.op), record.modes[2], record.counts) == (Op.COUNT_XOR, Mode.SUM, [100, 9])


def test_rows_that_the_memory_does_not_hold_are_sent_for_each_search(device: Device) -> None:
    rows = random((1500, 64), "u1")
    index = BinaryIndex(device, 512)
    index.add(rows[:700])
    index.add(rows[700:])
    rows_there = rows.copy()
    rows[:] = 0
    sent(device)
    for _ in range(2):
        expect(index.search(rows_there[-3:], 4), nearest(rows_there[-3:], rows_there, 4))
        assert rows.nbytes / 3 < sent(device) < rows.nbytes


def test_rows_keep_their_numbers_when_memory_becomes_free(device: Device) -> None:
    rows = random((1000, 64), "u1")
    index = BinaryIndex(device, 512)
    held = device.asarray(random(40_000, "u1"))
    index.add(rows[:600])
    held.free()
    index.add(rows[600:])
    expect(index.search(rows[598:602], 2), nearest(rows[598:602], rows, 2))


def test_a_tile_is_sent_while_the_one_before_is_compared() -> None:
    rows = random((400, 64), "u1")
    device = model(memory_bytes=1 << 13, eager=False)
    expect(device.search(rows[7:9], rows, 3), nearest(rows[7:9], rows, 3))


def test_results_of_few_rows_and_many_queries_take_all_the_room() -> None:
    device = model(memory_bytes=1 << 14)
    rows, queries = random((330, 16), "u1"), random((20, 16), "u1", 2)
    index = BinaryIndex(device, 128, metric="jaccard")
    index.add(rows[:300])
    index.add(rows[300:])
    log = link_of(device).log
    log.clear()
    expect(index.search(queries, 3), nearest(queries, rows, 3, "jaccard"))
    assert len(log) == 22


def test_a_file_is_searched_in_pieces(device: Device, tmp_path: Path) -> None:
    rows = np.memmap(tmp_path / "rows", np.uint8, "w+", shape=(1500, 64))
    rows[:] = random((1500, 64), "u1")
    index = BinaryIndex(device, 512)
    index.add(rows)
    expect(index.search(rows[17:19], 3), nearest(rows[17:19], rows, 3))
    rows[1499] = rows[17]
    assert index.search(rows[17:18], 2)[1].tolist() == [[17, 1499]]
    expect(device.search(rows[17:19], rows, 3), nearest(rows[17:19], rows, 3))


def test_rows_that_come_one_by_one_share_memory(device: Device) -> None:
    rows = random((200, 8), "u1")
    index = BinaryIndex(device, 64)
    for row in rows:
        index.add(row[None])
    assert device.driver.allocator.pieces < 25
    expect(index.search(rows[:5], 5), nearest(rows[:5], rows, 5))


def test_an_index_that_is_reset_is_empty_and_can_be_filled_again(device: Device) -> None:
    rows = random((40, 8), "u1")
    index = BinaryIndex(device, 64)
    index.add(rows)
    index.reset()
    assert index.ntotal == device.driver.allocator.pieces == 0
    index.add(rows[20:])
    expect(index.search(rows[:2], 2), nearest(rows[:2], rows[20:], 2))


def test_memory_is_left_for_others(device: Device) -> None:
    index = BinaryIndex(device, 512)
    index.add(random((1500, 64), "u1"))
    a = random((100, 8), "u1")
    assert same(device.bit_not(a), ~a)
    assert device.driver.allocator.largest() >= device.driver.geometry.memory_bytes // 5


def test_arrays_on_the_device_and_views_are_rows_too(device: Device) -> None:
    rows = random((50, 8), "u1")
    there = device.asarray(rows)
    expect(device.search(there[:2], there, 3), nearest(rows[:2], rows, 3))
    turned = device.search(rows[:2, ::-1], rows[:, ::-1], 3)
    expect(turned, nearest(rows[:2], rows, 3))


def test_threads_take_turns(device: Device) -> None:
    rows = random((300, 8), "u1")
    index = BinaryIndex(device, 64)
    index.add(rows)
    with ThreadPoolExecutor(4) as pool:
        searches = [pool.submit(index.search, rows[:9], 4) for _ in range(4)]
        index.add(rows)
    found = [search.result() for search in searches]
    for distances, indices in found:
        both = nearest(rows[:9], rows, 4), nearest(rows[:9], np.tile(rows, (2, 1)), 4)
        assert any(same(distances, x) and same(indices, y) for x, y in both)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda i, r: i.search(r, 0), SearchError, "k: 0; expected 1 to 2147483647 rows"),
        (lambda i, r: i.search(r, -3), SearchError, "k: -3"),
        (lambda i, r: i.search(np.repeat(r, 500, 0), 2**31 - 1), SearchError, "k: 2147483647 rows"),
        (lambda i, r: i.search(r, 1.5), SearchError, "k: 1.5; expected a whole number"),
        (lambda i, r: i.search(r, 2**63), SearchError, "k: 9223372036854775808; expected 1 to"),
        (lambda i, r: i.search(r[:, :7]), ShapeError, r"queries: shape \(20, 7\); .* of 64 bits"),
        (lambda i, r: i.search(r[0]), ShapeError, r"queries: shape \(8,\)"),
        (lambda i, r: i.search(r.view("u8")), DataTypeError, "queries: data type uint64; .*uint8"),
        (lambda i, r: i.search(r > 9), DataTypeError, "np.packbits packs truth values"),
        (lambda i, r: i.search(None), DataTypeError, "queries: data type object"),
        (lambda i, r: i.add(r[:, :4]), ShapeError, r"rows: shape \(20, 4\)"),
        (lambda i, r: i.add(r.astype(int)), DataTypeError, "rows: data type int64"),
        (lambda i, r: i.range_search(r, "near"), SearchError, "radius: 'near'; expected a number"),
        (lambda i, r: i.range_search(r, None), SearchError, "radius: None"),
        (lambda i, r: i.range_search(r, np.nan), SearchError, "radius: nan; expected a number"),
        (lambda i, r: i.range_search(r, np.complex64(1)), SearchError, "radius: .*1.*0j"),
        (lambda i, r: i.range_search(r, -1), SearchError, "radius: -1; expected a number of bits"),
        (lambda i, r: i.range_search(r, 6.5), SearchError, "radius: 6.5; .* 0 or more, whole"),
        (lambda i, r: i.search(r, radius=-np.inf), SearchError, "radius: -inf; expected a number"),
        (lambda i, r: i.search(r, 3, radius=np.float32(0.5)), SearchError, "0 or more, whole"),
        (lambda i, r: i.device.search(r, r, radius=-1), SearchError, "radius: -1; expected"),
        (lambda i, r: i.device.search(r, r, 2, radius=0.5), SearchError, "radius: 0.5; expected"),
        (lambda i, r: i.search(r[:1], 2**31 - 1), SearchError, "expected at most 20, as there are"),
        (lambda i, r: i.device.search(r, r, 2**31 - 1), SearchError, "expected at most 20"),
        (lambda i, r: i.device.search(r, r[:, :4]), ShapeError, "rows of 32 bits"),
        (lambda i, r: i.device.search(r, r[0]), ShapeError, r"database: shape \(8,\)"),
        (lambda i, r: i.device.search(r, r, 1, metric="no"), SearchError, "'hamming' or 'jaccard'"),
        (lambda i, r: BinaryIndex(i.device, 12), SearchError, "dimension: 12 bits; .* multiple of"),
        (lambda i, r: BinaryIndex(i.device, 0), SearchError, "dimension: 0 bits"),
        (lambda i, r: BinaryIndex(i.device, "8"), SearchError, "dimension: '8'; .* whole number"),
        (lambda i, r: BinaryIndex("sim", 8), DataTypeError, "device: 'sim'"),
    ],
)
def test_what_makes_no_search_is_refused_before_anything_is_sent(
    call: Callable[[BinaryIndex, NDArray[np.uint8]], Any], error: type[BitlaneError], message: str
) -> None:
    device = model()
    rows = random((20, 8), "u1")
    index = BinaryIndex(device, 64)
    index.add(rows)
    link_of(device).traffic.clear()
    with pytest.raises(error, match=message) as caught:
        call(index, rows)
    assert "\n" not in str(caught.value)
    assert link_of(device).traffic == []
    assert index.ntotal == 20


def test_k_that_the_memory_does_not_hold_is_refused_before_any_is_allocated(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = random((900, 8), "u1")
    index = BinaryIndex(device, 64)
    index.add(rows)
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
    assert same(index.search(many, 800)[1], nearest(many, rows, 800)[1])


def test_the_memory_of_this_computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(results, "_CONTAINER_LIMIT", limit)
    whole = results.memory_bytes()
    assert whole > 1 << 28
    limit.write_text("max\n")
    assert results.memory_bytes() == whole
    limit.write_text("123456\n")
    assert results.memory_bytes() == 123456


def test_a_closed_device_is_named(device: Device) -> None:
    index = BinaryIndex(device, 64)
    rows = random((2, 8), "u1")
    index.add(rows)
    device.close()
    for call in (index.add, index.search, lambda x: index.range_search(x, 1)):
        with pytest.raises(LinkError, match="the device is closed"):
            call(rows)
    index.reset()


@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize("row_bytes", [16, 100, 300])
def test_any_room_for_a_query_and_rows_will_do(row_bytes: int, sums: bool) -> None:
    """A message that tells what is expected is right to the byte."""
    rows = random((40, row_bytes), "u1", 1)
    modes = frozenset(Mode) if sums else frozenset({Mode.DENSE})
    enough = False
    for free in range(256, 6000, 192 * stride(3)):
        device = model(memory_bytes=1 << 14, modes=modes, loops=4 if sums else 1)
        held = device.asarray(random((1 << 14) - free, "u1"))
        room = device.driver.allocator.largest()
        try:
            got = device.search(rows[:5], rows, 3, metric="jaccard")
        except bitlane.OutOfDeviceMemory as error:
            wanted = re.search(r"expected (\d+) for", str(error))
            assert wanted
            assert room < int(wanted[1])
            assert not enough, f"{room} bytes free"
        else:
            enough = True
            expect(got, nearest(rows[:5], rows, 3, "jaccard"))
        assert held.size
    assert enough


def test_a_memory_without_room_for_a_query_is_named() -> None:
    device = model(memory_bytes=1 << 11)
    held = device.asarray(random(1900, "u1"))
    with pytest.raises(bitlane.OutOfDeviceMemory, match="bytes of free device memory; expected"):
        device.search(random((2, 64), "u1"), random((2, 64), "u1"))
    assert held.size


def test_an_index_says_what_it_is(device: Device) -> None:
    index = BinaryIndex(device, 64, metric="jaccard")
    index.add(random((5, 8), "u1"))
    assert repr(index).startswith("<bitlane.BinaryIndex: 5 rows of 64 bits, jaccard, on <bitlane")
    assert (index.dimension, index.metric) == (64, "jaccard")
