"""The search array finds the nearest rows of each query, under any stalls, in known cycles."""

import numpy as np
import pytest

from bitlane_rtl.configuration import Configuration
from bitlane_rtl.search.search_array import SearchArray
from support.oracle import nearest
from support.rtl.searching import Bytes, Found, configured, search
from support.rtl.streams import ALL_STALLS, STALLS, Stalls
from support.seeds import slow

CIRCUITS = {
    "one unit": configured(1, nearest=1),
    "two clusters": configured(6),
    "narrow beats": configured(5, data_width=32, nearest=2, length_bits=12),
    "rows of four beats": configured(8, row_bits=128, data_width=32, queries=8, nearest=8),
    "units beyond queries": configured(21, queries=2),
}

QUICK = {"two clusters", "narrow beats"}
"""Circuits of the quick tier."""


def random_batch(seed: int, configuration: Configuration) -> tuple[Bytes, Bytes]:
    """Return queries and rows; many rows appear twice or more."""
    generator = np.random.default_rng(seed)
    circuit = configuration.search
    assert circuit is not None
    count, rows = generator.integers(1, circuit.queries + 1), generator.integers(1, 400)
    row_bytes = circuit.row_bits // 8
    database = generator.integers(0, 256, (rows, row_bytes), np.uint8)
    database = database[np.sort(generator.integers(0, rows, rows))]
    return generator.integers(0, 256, (count, row_bytes), np.uint8), database


def assert_found(
    configuration: Configuration, batches: list[tuple[Bytes, Bytes]], stalls: Stalls
) -> None:
    """Search ``batches`` one after the other, and compare all lists with the oracle's."""
    circuit = configuration.search
    assert circuit is not None
    for found, (queries, rows) in zip(search(configuration, batches, stalls), batches, strict=True):
        want = np.array(nearest(rows, queries, circuit.nearest), np.uint32)
        wrong = np.argwhere((found.words != want).any(axis=2))
        assert not len(wrong), (
            f"{configuration.search}, {stalls}, {len(rows)} rows, {len(queries)} queries:"
            f" (query, rank) {wrong[:5].tolist()}"
        )


@pytest.mark.parametrize("stalls", ALL_STALLS)
@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in CIRCUITS])
def test_the_nearest_rows_are_found(name: str, stalls: Stalls) -> None:
    circuit = CIRCUITS[name]
    assert_found(circuit, [random_batch(seed, circuit) for seed in range(6)], stalls)


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 6, 7, 12, 13])
@pytest.mark.parametrize("queries", [1, 2, 16])
def test_few_rows_leave_places_empty(queries: int, rows: int) -> None:
    generator = np.random.default_rng(rows)
    some, all_rows = (generator.integers(0, 256, (n, 8), np.uint8) for n in (queries, rows))
    assert_found(CIRCUITS["two clusters"], [(some, all_rows)] * 2, STALLS[0])


@pytest.mark.parametrize("stalls", ALL_STALLS)
def test_of_equal_distances_the_lower_index_wins(stalls: Stalls) -> None:
    """Rows of eight bytes, each 0 or 1, have only nine distinct distances."""
    generator = np.random.default_rng(7)
    rows = generator.integers(0, 2, (500, 8), np.uint8)
    assert_found(CIRCUITS["two clusters"], [(rows[:16], rows)], stalls)
    assert_found(CIRCUITS["two clusters"], [(rows[:3], np.repeat(rows[:4], 50, axis=0))], stalls)


@pytest.mark.parametrize("stalls", ALL_STALLS)
@pytest.mark.parametrize("queries", [1, 16])
def test_each_row_nearer_than_all_before_is_slow_and_right(queries: int, stalls: Stalls) -> None:
    bits = np.arange(64) < np.arange(64, -1, -1)[:, np.newaxis]
    rows = np.repeat(np.packbits(bits, axis=1), 4, axis=0)
    assert_found(CIRCUITS["two clusters"], [(np.zeros((queries, 8), np.uint8), rows)] * 2, stalls)


def test_hits_in_the_farthest_units_alone_are_not_lost() -> None:
    """Rows of each tile in the second cluster are nearer than all before; the others are far."""
    bits = np.arange(64) < np.arange(63, 23, -1)[:, np.newaxis]
    near = np.repeat(np.packbits(bits, axis=1), 2, axis=0).reshape(40, 2, 8)
    rows = np.concatenate([np.full((40, 4, 8), 255, np.uint8), near], axis=1).reshape(240, 8)
    queries = np.zeros((16, 8), np.uint8)
    assert_found(CIRCUITS["two clusters"], [(queries, rows)], STALLS[0])


@pytest.mark.parametrize("circuit", [CIRCUITS["narrow beats"], slow(configured(5, length_bits=12))])
def test_the_longest_run_has_no_row_twice(circuit: Configuration) -> None:
    """Four units of the last tile still hold rows of the tile before, which are the nearest."""
    rows = np.full((511, 8), 255, np.uint8)
    rows[505:510] = 1
    assert_found(circuit, [(np.zeros((16, 8), np.uint8), rows)], STALLS[0])


def test_a_circuit_without_an_array_has_none_to_build() -> None:
    with pytest.raises(ValueError) as caught:
        SearchArray(Configuration())
    assert str(caught.value) == "search: None; there is no array to build"


# --- cycles of a search ---------------------------------------------------------------------------


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
