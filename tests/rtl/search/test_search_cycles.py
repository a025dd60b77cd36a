"""A search takes the cycles that it says: exactly where hits hold nothing up, else about."""

import numpy as np
import pytest

from support.oracle import nearest
from support.rtl.searching import Found, configured, search
from support.seeds import slow

SETTLES = 32 + 5
"""Cycles from the last query to the first list: a FIFO's depth, and the registers on the way."""


def found_of_equal_rows(
    units: int, data_width: int, rows: int, queries: int, capacity: int
) -> Found:
    """Search rows that equal the queries: only rows of the first tiles are hits.

    The array stores ``capacity`` queries.
    """
    configuration = configured(units, queries=capacity, data_width=data_width)
    batch = np.zeros((queries, 8), np.uint8), np.zeros((rows, 8), np.uint8)
    return search(configuration, [batch])[0]


@pytest.mark.parametrize("queries", [1, 2, 4])
@pytest.mark.parametrize("tiles", [16, 17, 40])
@pytest.mark.parametrize(("units", "capacity"), [(6, 16), slow(4, 64), slow(6, 64), slow(8, 64)])
def test_a_tile_takes_a_cycle_a_unit_and_a_query_and_one_more(
    units: int, capacity: int, tiles: int, queries: int
) -> None:
    found = found_of_equal_rows(units, 64, units * tiles, queries, capacity)
    first_tile_comes = queries + units
    lists_leave = queries * (2 + 4)
    passes = tiles * (units + queries + 1)
    assert found.last + 1 == first_tile_comes + passes + SETTLES + lists_leave


@pytest.mark.slow
@pytest.mark.parametrize("rows", [8 * 40, 8 * 40 + 5])
def test_rows_come_without_a_gap_where_their_beats_are_the_bound(rows: int) -> None:
    """A query, and rows of two beats: 16 beats a tile, which is 10 cycles in the units."""
    queries = 1
    found = found_of_equal_rows(8, 32, rows, queries, 64)
    last_tile = (rows - 1) % 8 + 1 + queries + 1
    assert found.last + 1 == 2 * queries + 2 * rows + last_tile + SETTLES + queries * (2 + 8)


@pytest.mark.parametrize(
    ("units", "queries", "capacity"), [(6, 16, 16), slow(8, 16, 64), slow(8, 64, 64)]
)
def test_hits_of_the_first_rows_take_their_cycles(units: int, queries: int, capacity: int) -> None:
    """Random rows, within 5 %: the first tile, 5 cycles for 4 hits, then 2 cycles a hit."""
    tiles, generator = 200, np.random.default_rng(queries)
    configuration = configured(units, queries=capacity)
    rows = generator.integers(0, 256, (units * tiles, 8), np.uint8)
    batch = generator.integers(0, 256, (queries, 8), np.uint8), rows
    (found,) = search(configuration, [batch])
    assert (found.words == nearest(rows, batch[0], 4)).all()
    first = 1.25 * units * queries
    later = sum(max(units + queries + 1, 2 * 4 / tile * queries) for tile in range(1, tiles))
    expected = queries + units + first + later + SETTLES + queries * (2 + 4)
    assert abs(found.last + 1 - expected) < 0.05 * expected, f"{found.last + 1}, not {expected}"
