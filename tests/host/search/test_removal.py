"""Removed rows leave gaps, which are closed before they take as much memory as the rows."""

from collections import deque
from random import Random
from typing import Any

import numpy as np
import pytest

from bitlane import BinaryIndex, OutOfDeviceMemory
from bitlane.api.device import Device
from bitlane_rtl.abi import CONTROL_BASE, Op
from bitlane_rtl.configuration import Search
from support.host.arrays import link_of, model, random, same
from support.host.neighbours import nearest


def taken(device: Device) -> int:
    """Return the bytes of the device's memory that are allocated."""
    return sum(piece.size for piece in device.driver.allocator.taken)


def sent(device: Device) -> int:
    """Return the bytes written to the device's memory since the last call."""
    traffic = link_of(device).traffic
    size = sum(size for kind, at, size in traffic if kind == "write" and at < CONTROL_BASE)
    traffic.clear()
    return size


def expect_rows(index: BinaryIndex, rows: Any) -> None:
    assert same(index.reconstruct_n(), rows)
    for one, other in zip(index.search(rows[:3], 5), nearest(rows[:3], rows, 5), strict=True):
        assert same(one, other)


def filled(rows: Any, **options: Any) -> BinaryIndex:
    index = BinaryIndex(model(**{"memory_bytes": 1 << 16} | options), 8 * rows.shape[1])
    index.add(rows)
    return index


def test_few_removed_rows_move_none() -> None:
    rows = random((600, 64), "u1")
    index = filled(rows)
    link_of(index.device).log.clear()
    sent(index.device)
    before = taken(index.device)
    index.remove_ids(np.arange(10))
    assert (sent(index.device), link_of(index.device).log) == (0, [])
    expect_rows(index, rows[10:])
    assert taken(index.device) == before


def test_memory_is_given_back_once_half_of_it_is_not_used() -> None:
    rows = random((600, 64), "u1")
    index = filled(rows)
    index.remove_ids(np.arange(0, 600, 2))
    assert taken(index.device) == 600 * 64
    sent(index.device)
    index.remove_ids([0])
    assert taken(index.device) == 299 * 64
    assert sent(index.device) == 0, "rows are moved within the device"
    assert {Op(record.op) for record in link_of(index.device).log} == {Op.COPY}
    expect_rows(index, rows[3::2])
    index.remove_ids(np.arange(299))
    assert taken(index.device) == index.device.driver.allocator.pieces == 0


def test_a_search_closes_gaps_that_it_would_close_each_time() -> None:
    """A search array cannot drop the rows between others: they would be gathered."""
    rows, queries = random((600, 64), "u1"), random((100, 64), "u1", 2)
    search = Search(units=3, row_bits=512, queries=8, nearest=8)
    index = filled(rows, search=search, eager=False)
    index.remove_ids(np.random.default_rng(1).permutation(600)[:250])
    left = index.reconstruct_n()
    expect_rows(index, left)
    assert taken(index.device) == 600 * 64
    log = link_of(index.device).log
    for _ in range(2):
        log.clear()
        assert same(index.search(queries, 5)[1], nearest(queries, left, 5)[1])
        assert taken(index.device) == 350 * 64
    assert {Op(record.op) for record in log} == {Op.SEARCH}


def test_a_full_memory_is_compacted_through_the_host() -> None:
    """There is no room for a copy: the next call reads the rows, and sends them to less memory."""
    rows = random((700, 64), "u1")
    index = filled(rows)
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
    rows = random((300, 64), "u1")
    index = filled(rows, memory_bytes=1 << 11)
    index.remove_ids(np.arange(5, 290))
    (*_, last) = index._contents.blocks
    assert last.content.base is None
    assert last.capacity == last.count == 10
    expect_rows(index, np.delete(rows, np.arange(5, 290), 0))


def test_rows_of_a_file_stay_in_it(tmp_path: Any) -> None:
    rows = np.memmap(tmp_path / "rows", np.uint8, "w+", shape=(300, 64))
    rows[:] = random((300, 64), "u1")
    index = filled(rows, memory_bytes=1 << 11)
    index.remove_ids(np.arange(5, 290))
    rows[299] = 7
    assert index.search(np.full((1, 64), 7, np.uint8), 1)[1].tolist() == [[14]]


@pytest.mark.parametrize("own", [False, True])
def test_blocks_stay_few_and_small(own: bool) -> None:
    """Rows come and go for long, the oldest first, or those that came last but for a few."""
    for newest in (False, True):
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
            gone = known[first : first + count] if own else np.arange(first, first + count)
            index.remove_ids(gone)
            for _ in range(count):
                rows.pop() if newest else rows.popleft()
                ids.pop() if newest else ids.popleft()
            assert index.device.driver.allocator.pieces < 12
            assert taken(index.device) <= 2 * 8 * len(rows) + 64 * 12
        expect = np.stack(list(rows))
        assert same(index.reconstruct_batch(list(ids) if own else np.arange(len(rows))), expect)


def test_many_small_indexes_become_few_blocks() -> None:
    index = BinaryIndex(model(memory_bytes=1 << 16), 64)
    rows = random((600, 8), "u1")
    for start in range(0, 600, 6):
        other = BinaryIndex(index.device, 64)
        other.add(rows[start : start + 6])
        index.merge_from(other)
        assert index.device.driver.allocator.pieces < 36
    expect_rows(index, rows)


def test_rows_that_come_one_by_one_to_the_host_are_searched_together() -> None:
    rows = random((400, 64), "u1")
    index = BinaryIndex(model(memory_bytes=1 << 13), 512)
    for row in rows:
        index.add(row[None])
    link_of(index.device).log.clear()
    expect_rows(index, rows)
    assert len(link_of(index.device).log) < 100


def test_a_device_that_cannot_copy_compacts_through_the_host() -> None:
    ops = frozenset(set(Op) - {Op.COPY, Op.SEARCH})
    rows = random((600, 64), "u1")
    index = filled(rows, ops=ops)
    index.remove_ids(np.arange(0, 600, 2))
    index.remove_ids(np.arange(5))
    expect_rows(index, rows[11::2])
    assert taken(index.device) == 295 * 64
    select = np.arange(295) % 3 == 0
    got = index.search(rows[:2], 3, select=select)
    distances, found = nearest(rows[:2], rows[11::2][select], 3)
    assert same(got[0], distances)
    assert same(got[1], np.flatnonzero(select)[found])


def test_many_rows_come_back_in_few_reads() -> None:
    rows = random((900, 16), "u1")
    index = filled(rows)
    link_of(index.device).traffic.clear()
    assert same(index.reconstruct_batch(np.arange(0, 900, 2)), rows[::2])
    assert [kind for kind, *_ in link_of(index.device).traffic] == ["read"]


def test_a_selection_needs_little_memory() -> None:
    """Gathered rows take half of the largest hole at most, and never what a scan needs."""
    rows = random((60, 64), "u1")
    select = np.arange(60) % 2 == 0
    distances, found = nearest(rows[:3], rows[::2], 4)
    enough = False
    for free in range(0, 2000, 64):
        index = filled(rows, memory_bytes=1 << 14)
        held = index.device.asarray(random(index.device.driver.allocator.largest() - free, "u1"))
        try:
            got = index.search(rows[:3], 4, select=select)
        except OutOfDeviceMemory:
            assert not enough
        else:
            enough = True
            assert same(got[0], distances)
            assert same(got[1], 2 * found)
        assert held.size
    assert enough
