"""Searches of FAISS on one core, beside what the device ``numpy`` predicts for boards.

``python -m pytest -s tools/benchmarks/test_faiss.py`` prints the tables of
docs/measurements/faiss.md. Not part of `make test`, because a test that runs at the same time makes
FAISS slower.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from benchmarks.timing import fastest
from bitlane.links import Predicted, duration

pytestmark = pytest.mark.slow

BOARDS = ("colorlight-i9", "colorlight-i5", "ulx3s-search")
"""A search array behind a network, a network alone, and a search array behind a serial line."""

SHAPES = [(20_000, 32, 1, 10), (20_000, 32, 100, 10), (100_000, 64, 100, 10), (100_000, 8, 500, 1)]
"""Rows, bytes of a row, queries and ``k``."""


def measured(
    rows: NDArray[np.uint8], queries: NDArray[np.uint8], k: int
) -> tuple[float, NDArray[np.int32]]:
    """Return the seconds of the fastest of five searches, and the distances."""
    index = faiss.IndexBinaryFlat(8 * rows.shape[1])
    index.add(rows)
    return fastest(lambda: index.search(queries, k), 5), index.search(queries, k)[0]


def spent(device: bitlane.Device, call: Callable[[], Any]) -> tuple[Predicted, Any]:
    """Return the prediction of what ``call`` costs, and its result."""
    link = device.driver.link
    before, result, after = link.prediction, call(), link.prediction
    assert before is not None
    assert after is not None
    return after - before, result


def show(*cells: object) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def seconds_of(*costs: Predicted) -> list[str]:
    """Return the cells of the circuit and of the line of each cost."""
    return [duration(x) for each in costs for x in (each.circuit_seconds, each.line_seconds)]


def test_a_search_beside_faiss() -> None:
    faiss.omp_set_num_threads(1)
    print("\n| Rows | Bytes | Queries | k | FAISS | Board | Upload, once | Circuit | Line | Wins |")
    print("|---:|---:|---:|---:|---:|---|---:|---:|---:|---|")
    for count, size, queries, k in SHAPES:
        random = np.random.default_rng(count)
        rows = random.integers(0, 256, (count, size), np.uint8)
        asked = random.integers(0, 256, (queries, size), np.uint8)
        seconds, want = measured(rows, asked, k)
        for board in BOARDS:
            with bitlane.open(f"numpy?board={board}") as device:
                index = bitlane.BinaryIndex(device, 8 * size)
                upload, _ = spent(device, partial(index.add, rows))
                search, (distances, _) = spent(device, partial(index.search, asked, k))
            assert np.array_equal(distances, want), board
            wins = search.circuit_seconds + search.line_seconds < seconds
            cells = (f"{count:,}", size, queries, k, duration(seconds), board)
            line = duration(upload.line_seconds)
            show(*cells, line, *seconds_of(search), "yes" if wins else "no")


ROWS, BYTES, K = 100_000, 64, 10

SUBSETS = {
    "all rows": lambda rows, random: rows >= 0,
    "the first half": lambda rows, random: rows < ROWS // 2,
    "every second row": lambda rows, random: rows % 2 == 0,
    "half, at random": lambda rows, random: random.random(ROWS) < 0.5,
    "1 %, at random": lambda rows, random: random.random(ROWS) < 0.01,
    "100 rows": lambda rows, random: rows % (ROWS // 100) == 5,
}
"""Truth values of rows by a name."""


def in_faiss(
    rows: NDArray[np.uint8], queries: NDArray[np.uint8], select: NDArray[np.bool_]
) -> tuple[float, Any]:
    """Return the seconds of the fastest of five searches of FAISS in a subset, and the result."""
    index = faiss.IndexBinaryFlat(8 * BYTES)
    index.add(rows)
    bitmap = np.packbits(select, bitorder="little")
    params = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bitmap))
    search = partial(index.search, queries, K, params=params)
    return fastest(search, 5), search()


def test_a_search_in_a_subset_beside_faiss() -> None:
    faiss.omp_set_num_threads(1)
    print("\n| Queries | Subset | FAISS | Board | `numpy` | Circuit | Line | Access |")
    print("|---:|---|---:|---|---:|---:|---:|---|")
    random = np.random.default_rng(1)
    rows = random.integers(0, 256, (ROWS, BYTES), np.uint8)
    many = random.integers(0, 256, (20, BYTES), np.uint8)
    for board in BOARDS:
        with bitlane.open(f"numpy?board={board}") as device:
            index = bitlane.BinaryIndex(device, 8 * BYTES)
            index.add(rows)
            for queries, (name, choose) in product((many[:1], many), SUBSETS.items()):
                select = choose(np.arange(ROWS), random)
                seconds, want = in_faiss(rows, queries, select)
                started = perf_counter()
                cost, found = spent(device, partial(index.search, queries, K, select=select))
                host = duration(perf_counter() - started)
                assert all(map(np.array_equal, found, want)), name
                lines = str(index.explain(queries, K, select=select)).splitlines()[1:-1]
                access = ", ".join(line.split("  ")[0] for line in lines)
                cells = (len(queries), name, duration(seconds), board, host)
                show(*cells, *seconds_of(cost), access)


def test_removal_on_the_device() -> None:
    """Print what the removal of a random half costs a board, and the first search after it."""
    print("\n| Board | Removal | Circuit | Line | First search, circuit | line |")
    print("|---|---|---:|---:|---:|---:|")
    random = np.random.default_rng(1)
    rows = random.integers(0, 256, (20_000, BYTES), np.uint8)
    for board, share in product(BOARDS, (0.1, 0.6)):
        with bitlane.open(f"numpy?board={board}") as device:
            index = bitlane.BinaryIndex(device, 8 * BYTES)
            index.add(rows)
            chosen = random.random(len(rows)) < share
            removed, _ = spent(device, partial(index.remove_ids, chosen))
            searched, _ = spent(device, partial(index.search, rows[:1], K))
            assert (removed.line_seconds > 0) is (share > 0.5)
            show(board, f"{share:.0%}", *seconds_of(removed, searched))
