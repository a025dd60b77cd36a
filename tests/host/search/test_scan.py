"""Searches by the circuit's search array: what NumPy finds, by one command a batch and piece."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitlane import BinaryIndex
from bitlane.api.device import Device
from bitlane.driver.driver import Driver
from bitlane.errors import OutOfDeviceMemory
from bitlane_rtl.abi import Mode, Op
from bitlane_rtl.configuration import Search
from support.host.arrays import random, same
from support.host.model_link import ModelLink
from support.host.neighbours import nearest, within

ARRAY = Search(units=3, row_bits=128, queries=8, nearest=4)


def device_of(search: Search = ARRAY, **changes: Any) -> tuple[Device, ModelLink]:
    options = {"memory_bytes": 1 << 16, "eager": False} | changes
    link = ModelLink(search=search, **options)
    return Device(Driver(link)), link


def ops(link: ModelLink) -> list[Op]:
    return [Op(record.op) for record in link.log]


def test_a_batch_is_one_pass_over_the_database() -> None:
    device, link = device_of()
    rows, queries = random((200, 16), "u1", 1), random((8, 16), "u1", 2)
    distances, indices = device.search(queries, rows, 4)
    assert ops(link) == [Op.SEARCH]
    expected = nearest(queries, rows, 4)
    assert same(distances, expected[0])
    assert same(indices, expected[1])


def test_more_queries_than_the_array_takes_are_several_batches() -> None:
    device, link = device_of()
    rows, queries = random((50, 16), "u1", 1), random((20, 16), "u1", 2)
    assert same(device.search(queries, rows, 3)[1], nearest(queries, rows, 3)[1])
    assert ops(link) == [Op.SEARCH] * 3


@pytest.mark.parametrize("eager", [False, True])
def test_a_database_longer_than_a_run_is_searched_in_pieces(eager: bool) -> None:
    device, link = device_of(length_bits=12, eager=eager)
    rows, queries = random((700, 16), "u1", 1), random((2, 16), "u1", 2)
    rows[500:503] = queries[0]
    assert same(device.search(queries, rows, 4)[1], nearest(queries, rows, 4)[1])
    assert ops(link) == [Op.SEARCH] * 3


def test_a_radius_beside_k_leaves_the_array_its_work() -> None:
    device, link = device_of()
    rows, queries = random((30, 16), "u1", 1), random((2, 16), "u1", 2)
    distances, indices = nearest(queries, rows, 4)
    radius = float(distances[0, 2])
    found = device.search(queries, rows, 4, radius=radius)[1]
    assert same(found, np.where(distances < radius, indices, -1))
    assert ops(link) == [Op.SEARCH]


def test_what_the_array_cannot_do_is_done_by_sums() -> None:
    device, link = device_of()
    rows, queries = random((30, 16), "u1", 1), random((2, 16), "u1", 2)
    assert same(device.search(queries, rows, 5)[1], nearest(queries, rows, 5)[1])
    assert same(device.search(queries, rows, radius=60)[2], within(queries, rows, 60)[2])
    both = device.search(queries, rows, 2, metric="jaccard")[1]
    assert same(both, nearest(queries, rows, 2, "jaccard")[1])
    long = random((30, 17), "u1", 3)
    assert same(device.search(long[:2], long, 2)[1], nearest(long[:2], long, 2)[1])
    assert Op.SEARCH not in ops(link)
    assert {record.modes[2] for record in link.log} == {Mode.SUM}


@given(
    st.lists(st.integers(0, 90), max_size=4),
    st.integers(1, 17),
    st.integers(0, 20),
    st.integers(1, 6),
    st.sampled_from([1 << 11, 1 << 12, 1 << 14]),
    st.booleans(),
    st.integers(0, 99),
)
def test_any_number_of_rows_on_any_memory(
    added: list[int], row_bytes: int, queries: int, k: int, memory: int, eager: bool, seed: int
) -> None:
    device, _ = device_of(memory_bytes=memory, length_bits=12, eager=eager)
    index = BinaryIndex(device, 8 * row_bytes)
    rows = random((sum(added), row_bytes), "u1", seed) & 3
    start = 0
    for count in added:
        index.add(rows[start : start + count])
        start += count
    asked = random((queries, row_bytes), "u1", seed + 1) & 3
    for got, expected in zip(index.search(asked, k), nearest(asked, rows, k), strict=True):
        assert same(got, expected)


def test_a_memory_without_room_for_a_query_is_named() -> None:
    device, _ = device_of(memory_bytes=1 << 11)
    held = device.asarray(random(1900, "u1"))
    with pytest.raises(MemoryError, match="bytes of free device memory; expected"):
        device.search(random((2, 16), "u1"), random((2, 16), "u1"), 2)
    assert held.size


def test_the_sizes_of_the_array_are_read_from_its_register() -> None:
    device, _ = device_of(Search(units=5, row_bits=512, queries=512, nearest=16))
    array = device.driver.geometry.search
    assert array is not None
    assert (array.units, array.row_bytes, array.queries, array.nearest) == (5, 64, 512, 16)
    assert np.array_equal(device.search(random((1, 64), "u1"), random((1, 64), "u1"), 1)[1], [[0]])


def test_any_room_for_a_query_and_rows_will_do() -> None:
    rows = random((40, 16), "u1", 1)
    most = Search(units=3, row_bits=128, queries=8, nearest=64)
    least = 3 * 64 + 2 * 512
    for free in range(least - 64, 2 * least, 64):
        device, link = device_of(most, memory_bytes=1 << 14)
        held = device.asarray(random((1 << 14) - free, "u1"))
        room = device.driver.allocator.largest()
        if room < least:
            with pytest.raises(OutOfDeviceMemory, match=f"{room} bytes .* expected {least} for"):
                device.search(rows[:5], rows, 3)
        else:
            assert same(device.search(rows[:5], rows, 3)[1], nearest(rows[:5], rows, 3)[1])
            assert set(ops(link)) == {Op.SEARCH}
        assert held.size
