"""The search array finds the nearest rows of each query, for any input and any stalls."""

import numpy as np
import pytest

from bitlane_rtl.configuration import Configuration
from bitlane_rtl.search.search_array import SearchArray
from support.oracle import nearest
from support.rtl.searching import Bytes, configured, search
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
