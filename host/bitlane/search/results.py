"""Metrics, and the results of a search: the nearest rows, or all rows within a radius."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..errors import SearchError
from ..streaming import jaccard_index

Sums = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Metric:
    """A distance between rows of bits."""

    name: str
    ops: tuple[Op, ...]
    """Operations whose counts, added up over a row, make the distance."""
    dtype: np.dtype[Any]
    farthest: float
    """Filler distance where fewer than ``k`` rows exist."""
    of: Callable[[Sequence[Sums]], AnyArray]
    """Make distances of sums, one array an operation."""


def _hamming(sums: Sequence[Sums]) -> AnyArray:
    return sums[0].astype(np.int32)


def _jaccard(sums: Sequence[Sums]) -> AnyArray:
    return 1 - jaccard_index(*sums)


_METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("hamming", (Op.COUNT_XOR,), np.dtype(np.int32), 2**31 - 1, _hamming),
        Metric("jaccard", (Op.COUNT_AND, Op.COUNT_OR), np.dtype(np.float64), np.inf, _jaccard),
    )
}


def metric_of(name: object) -> Metric:
    """Return the metric ``name``. Raises ``SearchError``."""
    if not isinstance(name, str) or name not in _METRICS:
        raise SearchError(f"metric: {name!r}; expected {' or '.join(map(repr, _METRICS))}")
    return _METRICS[name]


Indices = NDArray[np.int64]


class DistanceSink(Protocol):
    """Receives the distances of each query, rows in ascending order."""

    def add(self, query: int, distances: AnyArray, row: int) -> None:
        """Add distances (queries, rows) from ``query`` and ``row`` on."""


_MOST_FILLERS: Final = 1 << 26
"""Most entries without a row in a result: 800 MB. More are a slip, and might fill the memory."""


_COPIES: Final = 3
"""Copies of a result that merging the results of tiles takes at most."""


def expect_room(queries: int, k: int, rows: int, metric: Metric) -> None:
    """Raise ``SearchError`` if this computer has no memory for a result, or few entries a row."""
    if k > rows and queries * (k - rows) > _MOST_FILLERS:
        raise SearchError(
            f"k: {k} rows for each of {queries} queries; expected at most {max(rows, 1)}, as there"
            " are rows"
        )
    entry = metric.dtype.itemsize + np.dtype(np.int64).itemsize
    most = memory_bytes() // (_COPIES * entry * max(1, queries))
    if k > most:
        raise SearchError(
            f"k: {k} rows for each of {queries} queries; expected at most {most}, for which this"
            " computer has memory"
        )


def memory_bytes(container_limit: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """Return the bytes of memory that this process may use.

    Linux writes the limit of a container's memory to ``container_limit``: a number, or ``max``.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, ValueError):
        limits.append(int(container_limit.read_text()))
    return min(limits)


class TopK:
    """The ``k`` nearest rows of each of ``queries`` queries.

    ``distances`` and ``indices`` (queries, k): the nearest first; where fewer rows exist, the
    metric's farthest distance and index -1. Raises ``SearchError`` if this computer has no memory
    for them.
    """

    def __init__(self, queries: int, k: int, metric: Metric) -> None:
        self.k = k
        self._metric = metric
        try:
            self.distances: NDArray[Any] = np.full((queries, k), metric.farthest, metric.dtype)
            self.indices: Indices = np.full((queries, k), -1, np.int64)
        except MemoryError:
            raise SearchError(
                f"k: {k} rows for each of {queries} queries do not fit this computer's memory"
            ) from None

    def add(self, query: int, distances: AnyArray, row: int) -> None:
        chosen = np.stack([_smallest(each, self.k) for each in distances])
        self.merge(query, np.take_along_axis(distances, chosen, axis=1), chosen + row)

    def merge(self, query: int, distances: AnyArray, indices: Indices) -> None:
        """Merge sorted lists (queries, any number) of rows after all earlier ones."""
        chosen = slice(query, query + len(distances))
        both = np.concatenate([self.distances[chosen], distances], axis=1)
        order = np.argsort(both, axis=1, kind="stable")[:, : self.k]
        rows = np.concatenate([self.indices[chosen], indices], axis=1)
        self.distances[chosen] = np.take_along_axis(both, order, axis=1)
        self.indices[chosen] = np.take_along_axis(rows, order, axis=1)

    def drop(self, radius: float) -> None:
        """Remove rows that are not nearer than ``radius``."""
        far = self.distances >= radius
        self.distances[far] = self._metric.farthest
        self.indices[far] = -1


class WithinRadius:
    """All rows that are nearer than ``radius`` to each of ``queries`` queries."""

    def __init__(self, queries: int, radius: float, metric: Metric) -> None:
        self._radius = radius
        self._metric = metric
        self._distances: list[list[AnyArray]] = [[] for _ in range(queries)]
        self._indices: list[list[Indices]] = [[] for _ in range(queries)]

    def add(self, query: int, distances: AnyArray, row: int) -> None:
        for number, each in enumerate(distances, query):
            near = np.flatnonzero(each < self._radius)
            self._distances[number].append(each[near])
            self._indices[number].append(near + row)

    def merge(
        self, query: int, limits: NDArray[np.uint64], distances: AnyArray, indices: Indices
    ) -> None:
        """Merge a `result` for the queries from ``query`` on, of rows after all earlier ones."""
        for number, (first, end) in enumerate(pairwise(limits.tolist()), query):
            self._distances[number].append(distances[first:end])
            self._indices[number].append(indices[first:end])

    def result(self) -> tuple[NDArray[np.uint64], AnyArray, Indices]:
        """Return limits (queries + 1,), and distances and indices of all queries in order."""
        counts = [sum(map(len, each)) for each in self._indices]
        limits = np.zeros(len(counts) + 1, np.uint64)
        np.cumsum(counts, out=limits[1:])
        return (
            limits,
            _concatenate(self._distances, self._metric.dtype),
            _concatenate(self._indices, np.dtype(np.int64)),
        )


def _concatenate(parts: Sequence[Sequence[AnyArray]], dtype: np.dtype[Any]) -> AnyArray:
    return np.concatenate([np.empty(0, dtype), *(part for each in parts for part in each)])


def _smallest(values: AnyArray, count: int) -> NDArray[np.intp]:
    """Return the indices of the smallest ``count`` of ``values``, in order, ties by index."""
    if count >= len(values):
        return np.argsort(values, kind="stable")
    last = np.partition(values, count - 1)[count - 1]
    below = np.flatnonzero(values < last)
    ties = np.flatnonzero(values == last)[: count - len(below)]
    return np.concatenate([below[np.argsort(values[below], kind="stable")], ties])
