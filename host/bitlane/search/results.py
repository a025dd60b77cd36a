"""What a distance is, and the distances that are kept: nearest rows, or all within a radius."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..errors import SearchError

Sums = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Metric:
    """A distance between rows of bits."""

    name: str
    ops: tuple[Op, ...]
    """Whose counts, added up over a row, it is made of."""
    dtype: np.dtype[Any]
    farthest: float
    """What stands for the distance of a row that there is not."""
    of: Callable[[Sequence[Sums]], AnyArray]
    """The distances that sums, one array an operation, make."""


def _hamming(sums: Sequence[Sums]) -> AnyArray:
    return sums[0].astype(np.int32)


def _jaccard(sums: Sequence[Sums]) -> AnyArray:
    shared, either = sums
    similarity = np.zeros(shared.shape)
    np.divide(shared, either, out=similarity, where=either != 0)
    return 1 - similarity


_METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("hamming", (Op.COUNT_XOR,), np.dtype(np.int32), 2**31 - 1, _hamming),
        Metric("jaccard", (Op.COUNT_AND, Op.COUNT_OR), np.dtype(np.float64), np.inf, _jaccard),
    )
}


def metric_of(name: object) -> Metric:
    """The metric of that name. Raises ``SearchError``."""
    if not isinstance(name, str) or name not in _METRICS:
        raise SearchError(f"metric: {name!r}; expected {' or '.join(map(repr, _METRICS))}")
    return _METRICS[name]


Indices = NDArray[np.int64]


class Found(Protocol):
    """What distances are shown to, of each query in the order of the rows."""

    def offer(self, query: int, distances: AnyArray, row: int) -> None:
        """Distances (queries, rows), the first of them of ``query`` and ``row``."""


class Nearest:
    """The ``k`` nearest rows of each of ``queries`` queries.

    ``distances`` and ``indices`` (queries, k): the nearest first; where there are fewer rows,
    the metric's farthest distance and index -1. Raises ``SearchError`` where this computer has no
    memory for them.
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

    def offer(self, query: int, distances: AnyArray, row: int) -> None:
        chosen = np.stack([_smallest(each, self.k) for each in distances])
        self.merge(query, np.take_along_axis(distances, chosen, axis=1), chosen + row)

    def merge(self, query: int, distances: AnyArray, indices: Indices) -> None:
        """Lists (queries, any number), sorted, of rows behind all that were shown before."""
        place = slice(query, query + len(distances))
        both = np.concatenate([self.distances[place], distances], axis=1)
        order = np.argsort(both, axis=1, kind="stable")[:, : self.k]
        rows = np.concatenate([self.indices[place], indices], axis=1)
        self.distances[place] = np.take_along_axis(both, order, axis=1)
        self.indices[place] = np.take_along_axis(rows, order, axis=1)

    def drop(self, radius: float) -> None:
        """Leave only rows that are nearer than ``radius``."""
        far = self.distances >= radius
        self.distances[far] = self._metric.farthest
        self.indices[far] = -1


class Within:
    """All rows that are nearer than ``radius`` to each of ``queries`` queries."""

    def __init__(self, queries: int, radius: float, metric: Metric) -> None:
        self._radius = radius
        self._metric = metric
        self._distances: list[list[AnyArray]] = [[] for _ in range(queries)]
        self._indices: list[list[Indices]] = [[] for _ in range(queries)]

    def offer(self, query: int, distances: AnyArray, row: int) -> None:
        for number, each in enumerate(distances, query):
            near = np.flatnonzero(each < self._radius)
            self._distances[number].append(each[near])
            self._indices[number].append(near + row)

    def merge(
        self, query: int, limits: NDArray[np.uint64], distances: AnyArray, indices: Indices
    ) -> None:
        """What `result` gave for ``query`` and others, of rows behind all shown before."""
        for number, (first, end) in enumerate(pairwise(limits.tolist()), query):
            self._distances[number].append(distances[first:end])
            self._indices[number].append(indices[first:end])

    def result(self) -> tuple[NDArray[np.uint64], AnyArray, Indices]:
        """Limits (queries + 1,), and distances and indices of all queries one after another."""
        counts = [sum(map(len, each)) for each in self._indices]
        limits = np.zeros(len(counts) + 1, np.uint64)
        np.cumsum(counts, out=limits[1:])
        return (
            limits,
            _joined(self._distances, self._metric.dtype),
            _joined(self._indices, np.dtype(np.int64)),
        )


def _joined(parts: Sequence[Sequence[AnyArray]], dtype: np.dtype[Any]) -> AnyArray:
    return np.concatenate([np.empty(0, dtype), *(part for each in parts for part in each)])


def _smallest(values: AnyArray, count: int) -> NDArray[np.intp]:
    """Where the smallest ``count`` of ``values`` are, in order; of equal ones the first."""
    if count >= len(values):
        return np.argsort(values, kind="stable")
    last = np.partition(values, count - 1)[count - 1]
    below = np.flatnonzero(values < last)
    ties = np.flatnonzero(values == last)[: count - len(below)]
    return np.concatenate([below[np.argsort(values[below], kind="stable")], ties])
