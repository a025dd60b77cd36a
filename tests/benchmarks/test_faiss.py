"""Searches of FAISS on one core, beside what the device ``numpy`` predicts for boards.

``python -m pytest -s tests/benchmarks/test_faiss.py`` prints the table of docs/distances.md. Not
part of `make test`, because a test that runs at the same time makes FAISS slower.
"""

from time import perf_counter

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane.links.predicted import Predicted, duration

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
    seconds, distances = [], np.empty(0, np.int32)
    for _ in range(5):
        started = perf_counter()
        distances, _ = index.search(queries, k)
        seconds.append(perf_counter() - started)
    return min(seconds), distances


def predicted(
    board: str, rows: NDArray[np.uint8], queries: NDArray[np.uint8], k: int
) -> tuple[Predicted, Predicted, NDArray[np.int32]]:
    """Return the predictions of an index's `add` and of a search in it, and the distances."""
    with bitlane.open(f"numpy?board={board}") as device:
        link = device.driver.link
        index = bitlane.BinaryIndex(device, 8 * rows.shape[1])
        times = [link.prediction]
        index.add(rows)
        times.append(link.prediction)
        distances, _ = index.search(queries, k)
        times.append(link.prediction)
    start, added, searched = (time for time in times if time is not None)
    return added - start, searched - added, distances


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
            upload, search, distances = predicted(board, rows, asked, k)
            assert np.array_equal(distances, want), board
            wins = search.circuit_seconds + search.line_seconds < seconds
            cells = [f"{count:,}", str(size), str(queries), str(k), duration(seconds), board]
            cells += [duration(upload.line_seconds), duration(search.circuit_seconds)]
            cells += [duration(search.line_seconds), "yes" if wins else "no"]
            print("| " + " | ".join(cells) + " |")
