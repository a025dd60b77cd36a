"""Rows of an index: their ids, and its memory after they are fetched, merged and removed."""

from collections import deque
from random import Random
from typing import Any

import numpy as np
import pytest

from bitlane import ArrayIndexError, BinaryIndex, OutOfDeviceMemory, SearchError
from bitlane_rtl.abi import Op
from support.host.arrays import link_of, model, random, same
from support.host.indexes import (
    WIDE_ARRAY,
    answer,
    expect_equal,
    expect_found,
    index_of,
    sent,
    taken,
)

ROWS = random((40, 3), "u1")
IDS = np.arange(40)[::-1] * 10 - 5
WIDE = random((600, 64), "u1")


def filled(rows: Any = ROWS, ids: Any = IDS) -> BinaryIndex:
    """Return an index of ``rows`` with their own ids."""
    index: BinaryIndex = index_of(rows, ids)
    return index


# --- ids --------------------------------------------------------------------------------------


def test_results_have_the_ids() -> None:
    index, asked = filled(), ROWS[[3, 17]]
    expect_found(index, asked, ROWS, ids=IDS, k=5)
    expect_found(index, asked, ROWS, ids=IDS, radius=9)
    expect_equal(index.range_search(asked, 9), answer(asked, ROWS, ids=IDS, radius=9))
    for limits in ({"k": 3}, {"radius": 9}):
        expect_found(index.device, asked, ROWS, ids=IDS, **limits)
    expect_found(index.device, asked, ROWS[:0], ids=[], k=1)


@pytest.mark.parametrize("dtype", ["i8", "u8", ">i4", "u1", "O"])
def test_ids_are_of_any_type_of_integers(dtype: str) -> None:
    ids = np.array([3, 0, 250], dtype) if dtype != "O" else [3, 0, 250]
    assert filled(ROWS[:3], ids).ids.tolist() == [3, 0, 250]


def test_rows_come_back_by_their_ids() -> None:
    index = filled()
    assert same(index.reconstruct(-5), ROWS[39])
    assert same(index.reconstruct(np.int64(375)), ROWS[1])
    asked = [5, -5, 5, 385]
    expected = np.stack([ROWS[IDS.tolist().index(each)] for each in asked])
    assert same(index.reconstruct_batch(asked), expected)
    assert index.reconstruct_batch([]).shape == (0, 3)
    index = filled(ROWS[:3], [4, 6, 5])
    assert same(index.reconstruct_n(4, 3), ROWS[[0, 2, 1]])
    with pytest.raises(ArrayIndexError, match="n0: 0; no row has this id"):
        index.reconstruct_n()
    index.ids[:] = 0
    assert index.ids.tolist() == [4, 6, 5], "a copy is returned"


def test_rows_without_own_ids_come_back_by_their_numbers() -> None:
    index = BinaryIndex(model(), 24)
    assert index.reconstruct_n().shape == (0, 3)
    index.add(ROWS)
    assert same(index.reconstruct_n(), ROWS)
    assert same(index.reconstruct_n(5), ROWS[5:])
    assert same(index.reconstruct_n(5, 7), ROWS[5:12])
    assert same(index.reconstruct_batch(np.array([39, 0, 39])), ROWS[[39, 0, 39]])


def test_a_row_comes_back_from_wherever_it_is() -> None:
    """From the device, or from the host, which has those that did not fit."""
    rows = random((3041, 3), "u1")
    index = index_of(rows[:40], memory_bytes=1 << 13)
    index.add(rows[40:41])
    index.add(rows[41:])
    for i in (0, 39, 40, 41, 3040, np.int64(2000)):
        assert same(index.reconstruct(i), rows[i])
    for i in (-1, 3041):
        with pytest.raises(ArrayIndexError, match=f"i: {i}; expected 0 to 3040"):
            index.reconstruct(i)
    index.reconstruct(2999)[:] = 0
    assert same(index.reconstruct(2999), rows[2999])
    index.reset()
    with pytest.raises(ArrayIndexError, match="i: 0; the index is empty"):
        index.reconstruct(0)


def test_an_id_that_was_removed_is_free() -> None:
    index = filled()
    assert index.remove_ids(IDS[:2]) == 2
    index.add_with_ids(ROWS[:1], IDS[1:2])
    assert index.search(ROWS[:1], 1)[1].tolist() == [[IDS[1]]]
    with pytest.raises(ArrayIndexError, match=f"i: {IDS[0]}; no row has this id"):
        index.reconstruct(IDS[0])


def test_an_id_twice_is_found_among_many() -> None:
    """Ids are sorted when a quarter has been added since: all of them, and each of the last."""
    index = BinaryIndex(model(memory_bytes=1 << 14), 8)
    ids = np.random.default_rng(1).permutation(6000) - 3000
    ids[ids == -1] = 6000
    rows = random((6000, 1), "u1")
    for start in range(0, 6000, 700):
        some = ids[start : start + 700]
        index.add_with_ids(rows[start : start + 700], some)
        asked = np.random.default_rng(start).permutation(index.ntotal)[:500]
        assert same(index.reconstruct_batch(ids[asked]), rows[asked])
        for twice in (some[0], some[-1], ids[start // 2], ids[0]):
            with pytest.raises(SearchError, match=f"ids: {twice} twice; expected each id once"):
                index.add_with_ids(ROWS[:2, :1], [9999, twice])
    assert same(index.ids, ids)


def test_the_last_id_of_int64_has_a_row() -> None:
    last = 2**63 - 1
    index = filled(ROWS[:2], [last, 7])
    assert same(index.reconstruct(last), ROWS[0])
    assert same(index.reconstruct_n(last, 1), ROWS[:1])


def test_no_rows_decide_nothing() -> None:
    index = BinaryIndex(model(), 24)
    index.add_with_ids(ROWS[:0], [])
    index.add(ROWS[:2])
    index.add_with_ids(ROWS[:0], np.empty(0))
    index.reset()
    index.add(ROWS[:0])
    index.add_with_ids(ROWS[:2], [5, 6])
    index.add(ROWS[:0])
    assert index.ids.tolist() == [5, 6]
    assert index.remove_ids([5, 6, 7]) == 2
    index.add(ROWS[:1])
    assert index.ids.tolist() == [0]


# --- merging ----------------------------------------------------------------------------------


def test_a_merge_empties_the_other_index() -> None:
    index, other = filled(), filled(ROWS[:7], IDS[:7])
    with pytest.raises(SearchError, match=f"ids: {IDS[0]} twice"):
        index.merge_from(other)
    index.merge_from(other, 1000)
    assert same(index.ids, np.concatenate([IDS, IDS[:7] + 1000]))
    assert other.ntotal == 0
    assert same(index.reconstruct(IDS[6] + 1000), ROWS[6])
    other.add(ROWS)
    assert same(other.reconstruct_n(), ROWS)


def test_indexes_on_one_device_are_merged_without_moving_a_row() -> None:
    device = model()
    index, other = index_of(ROWS[:9], device=device), index_of(ROWS[9:], device=device)
    link_of(device).traffic.clear()
    index.merge_from(other)
    assert link_of(device).traffic == []
    assert same(index.reconstruct_n(), ROWS)


def test_many_small_indexes_become_few_blocks() -> None:
    index = BinaryIndex(model(memory_bytes=1 << 16), 64)
    rows = random((600, 8), "u1")
    for start in range(0, 600, 6):
        index.merge_from(index_of(rows[start : start + 6], device=index.device))
        assert index.device.driver.allocator.pieces < 36
    expect_rows(index, rows)


# --- removing ---------------------------------------------------------------------------------


def expect_rows(index: BinaryIndex, rows: Any) -> None:
    assert same(index.reconstruct_n(), rows)
    expect_found(index, rows[:3], rows, k=5)


def test_few_removed_rows_move_none() -> None:
    index = index_of(WIDE)
    link_of(index.device).log.clear()
    sent(index.device)
    before = taken(index.device)
    index.remove_ids(np.arange(10))
    assert (sent(index.device), link_of(index.device).log) == (0, [])
    expect_rows(index, WIDE[10:])
    assert taken(index.device) == before


def test_memory_is_given_back_once_half_of_it_is_not_used() -> None:
    index = index_of(WIDE)
    index.remove_ids(np.arange(0, 600, 2))
    assert taken(index.device) == 600 * 64
    sent(index.device)
    index.remove_ids([0])
    assert taken(index.device) == 299 * 64
    assert sent(index.device) == 0, "rows are moved within the device"
    assert {Op(record.op) for record in link_of(index.device).log} == {Op.COPY}
    expect_rows(index, WIDE[3::2])
    index.remove_ids(np.arange(299))
    assert taken(index.device) == index.device.driver.allocator.pieces == 0


def test_a_search_closes_gaps_that_it_would_close_each_time() -> None:
    """A search array cannot drop the rows between others: they would be gathered."""
    index = index_of(WIDE, search=WIDE_ARRAY, eager=False)
    index.remove_ids(np.random.default_rng(1).permutation(600)[:250])
    left = index.reconstruct_n()
    expect_rows(index, left)
    assert taken(index.device) == 600 * 64
    log = link_of(index.device).log
    for _ in range(2):
        log.clear()
        expect_found(index, random((100, 64), "u1", 2), left, k=5)
        assert taken(index.device) == 350 * 64
    assert {Op(record.op) for record in log} == {Op.SEARCH}


def test_a_full_memory_is_compacted_through_the_host() -> None:
    """Without room for a copy, the next call reads the rows and writes them to less memory."""
    rows = random((700, 64), "u1")
    index = index_of(rows)
    held = index.device.asarray(random(index.device.driver.allocator.largest() - 3000, "u1"))
    index.remove_ids(np.arange(0, 700, 3))
    index.remove_ids(np.arange(0, 466, 3))
    left = np.delete(np.delete(rows, np.arange(0, 700, 3), 0), np.arange(0, 466, 3), 0)
    assert held.size
    expect_rows(index, left)
    assert taken(index.device) - held.nbytes <= 2 * left.nbytes
    sent(index.device)
    index.search(left[:1], 1)
    assert sent(index.device) == 64, "the rows are on the device again"


def test_rows_on_the_host_give_their_memory_back() -> None:
    index = index_of(WIDE[:300], memory_bytes=1 << 11)
    index.remove_ids(np.arange(5, 290))
    (*_, last) = index._contents.blocks
    assert last.content.base is None
    assert last.capacity == last.count == 10
    expect_rows(index, np.delete(WIDE[:300], np.arange(5, 290), 0))


def test_rows_of_a_file_stay_in_it(tmp_path: Any) -> None:
    rows = np.memmap(tmp_path / "rows", np.uint8, "w+", shape=(300, 64))
    rows[:] = WIDE[:300]
    index = index_of(rows, memory_bytes=1 << 11)
    index.remove_ids(np.arange(5, 290))
    rows[299] = 7
    assert index.search(np.full((1, 64), 7, np.uint8), 1)[1].tolist() == [[14]]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("newest", [False, True])
def test_blocks_stay_few_and_small(own: bool, newest: bool) -> None:
    """Rows come and go for long, the oldest first, or those that came last but for a few."""
    choose = Random(7)
    index = BinaryIndex(model(memory_bytes=1 << 14), 64)
    rows: deque[Any] = deque()
    ids: deque[int] = deque()
    for step in range(150):
        some = random((choose.randint(1, 40), 8), "u1", step)
        numbers = [1000 * step + number for number in range(len(some))]
        if own:
            index.add_with_ids(some, numbers)
        else:
            index.add(some)
        rows.extend(some)
        ids.extend(numbers)
        count = len(some) - 1 if newest else min(len(rows) - 1, choose.randint(0, 45))
        first = len(rows) - count if newest else 0
        known = list(ids)
        index.remove_ids(known[first:][:count] if own else np.arange(first, first + count))
        for _ in range(count):
            rows.pop() if newest else rows.popleft()
            ids.pop() if newest else ids.popleft()
        assert index.device.driver.allocator.pieces < 12
        assert taken(index.device) <= 2 * 8 * len(rows) + 64 * 12
    expected = np.stack(list(rows))
    assert same(index.reconstruct_batch(list(ids) if own else np.arange(len(rows))), expected)


def test_rows_that_come_one_by_one_to_the_host_are_searched_together() -> None:
    rows = random((400, 64), "u1")
    index = BinaryIndex(model(memory_bytes=1 << 13), 512)
    for row in rows:
        index.add(row[None])
    link_of(index.device).log.clear()
    expect_rows(index, rows)
    assert len(link_of(index.device).log) < 100


def test_a_device_that_cannot_copy_compacts_through_the_host() -> None:
    index = index_of(WIDE, ops=frozenset(set(Op) - {Op.COPY, Op.SEARCH}))
    index.remove_ids(np.arange(0, 600, 2))
    index.remove_ids(np.arange(5))
    left = WIDE[11::2]
    expect_rows(index, left)
    assert taken(index.device) == 295 * 64
    expect_found(index, WIDE[:2], left, k=3, mask=np.arange(295) % 3 == 0)


def test_many_rows_come_back_in_few_reads() -> None:
    rows = random((900, 16), "u1")
    index = index_of(rows)
    link_of(index.device).traffic.clear()
    assert same(index.reconstruct_batch(np.arange(0, 900, 2)), rows[::2])
    assert [kind for kind, *_ in link_of(index.device).traffic] == ["read"]


def test_a_selection_needs_little_memory() -> None:
    """Gathered rows take half of the largest hole at most, and never what a scan needs."""
    rows, enough = WIDE[:60], False
    for free in range(0, 2000, 64):
        index = index_of(rows, memory_bytes=1 << 14)
        held = index.device.asarray(random(index.device.driver.allocator.largest() - free, "u1"))
        try:
            expect_found(index, rows[:3], rows, k=4, mask=np.arange(60) % 2 == 0)
        except OutOfDeviceMemory:
            assert not enough
        else:
            enough = True
        assert held.size
    assert enough
