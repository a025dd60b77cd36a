"""Searches on the simulated circuit: those of an array, streamed ones, and what FAISS finds."""

from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane.demo import digits
from support.host.arrays import same
from support.host.indexes import nearest
from support.system.devices import DEFAULT, link_of, noise, opened


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
