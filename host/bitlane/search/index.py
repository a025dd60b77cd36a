"""A database of rows of bits on a device, and searches in it, with FAISS's shapes and order."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from operator import index as as_index
from os import PathLike
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import AnyArray
from ..arrays.value import DeviceLike, expect_device
from ..errors import ArrayIndexError, DataTypeError, SearchError, ShapeError
from ..streaming.operands import as_array, shown
from .by_array import array_for, offer_nearest
from .by_sums import offer_distances
from .database import Database, Rows, read_rows, write_rows
from .results import Found, Nearest, Within, metric_of


class SearchRequest:
    """A search as ``Device.search`` has it, without its database. Raises as that does."""

    def __init__(
        self, queries: ArrayLike, k: int | None, radius: float | None, metric: str
    ) -> None:
        self.queries: Rows = as_rows("queries", queries)
        self._metric = metric_of(metric)
        self._wanted = SearchLimits.of(k, radius)

    @property
    def keywords(self) -> dict[str, Any]:
        """Of ``Device.search``, for each part."""
        return {"k": self._wanted.k, "radius": self._wanted.radius, "metric": self._metric.name}

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """Of the arrays of an answer."""
        found = (self._metric.dtype, np.dtype(np.int64))
        return found if self._wanted.k is not None else (np.dtype(np.uint64), *found)

    @property
    def shapes(self) -> tuple[tuple[float, ...], ...]:
        """Of the arrays of an answer; NaN for a number of rows that only a search tells."""
        count, k = len(self.queries), self._wanted.k
        return ((count + 1,), (np.nan,), (np.nan,)) if k is None else ((count, k), (count, k))

    def join(
        self, answers: Iterable[tuple[int, int, tuple[AnyArray, ...]]]
    ) -> tuple[AnyArray, ...]:
        """What ``Device.search`` gives for the whole database.

        ``answers``: for each part the first of its queries, the first of its rows, and what a
        device has found in it. Those of a query stand in the order of the rows.
        """
        k, radius = self._wanted.k, self._wanted.radius
        if k is not None:
            nearest = Nearest(len(self.queries), k, self._metric)
            for query, row, (distances, indices) in answers:
                # Places that no row fills come behind those that were there at first.
                nearest.merge(query, distances, indices + row)
            return nearest.distances, nearest.indices
        assert radius is not None
        within = Within(len(self.queries), radius, self._metric)
        for query, row, (limits, distances, indices) in answers:
            within.merge(query, limits, distances, indices + row)
        return within.result()


_MOST_ROWS = 2**31 - 1
"""That a query may ask for; memory on the host is asked for all of them."""

_USUAL_K = 10
"""Rows for each query if neither ``k`` nor ``radius`` is given."""

_BEYOND_ALL = 2.0**64
"""A radius that no distance reaches."""

Ranges = tuple[NDArray[np.uint64], AnyArray, NDArray[np.int64]]
"""Limits, distances and indices: those of query i from ``limits[i]`` to ``limits[i + 1]``."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How many of the nearest rows a search returns (``k``), and how near they are (``radius``)."""

    k: int | None
    """None: all that are nearer than ``radius``."""
    radius: float | None

    @classmethod
    def of(cls, k: SupportsIndex | None, radius: float | None) -> Self:
        """What was given; 10 rows if nothing was. Raises ``SearchError``."""
        if k is None and radius is None:
            k = _USUAL_K
        return cls(
            None if k is None else check_k(k),
            None if radius is None else check_radius(radius),
        )


class BinaryIndex:
    """Rows of ``dimension`` bits, a multiple of 8, that are searched by brute force, exactly.

    The rows stay on the device as far as its memory goes; others are kept on the host, or in their
    file if they are a ``np.memmap``, and sent for each search. ``metric``: "hamming", the number
    of bits that differ, as int32; or "jaccard", 1 minus what ``Device.jaccard`` gives, the
    Tanimoto similarity, as float64. Threads may share it: calls wait for each other.

    Raises ``SearchError``, or ``DataTypeError`` for what is no device.
    """

    def __init__(self, device: DeviceLike, dimension: int, *, metric: str = "hamming") -> None:
        expect_device(device)
        self.device = device
        self._metric = metric_of(metric)
        bits = _whole("dimension", dimension)
        if bits < 8 or bits % 8:
            raise SearchError(f"dimension: {bits} bits; expected a multiple of 8, 8 or more")
        self._array = array_for(device.driver.geometry, bits // 8, self._metric)
        stride = self._array.row_bytes if self._array else bits // 8
        self._database = Database(device.driver, bits // 8, stride)

    @property
    def dimension(self) -> int:
        """Bits of a row."""
        return 8 * self._database.row_bytes

    @property
    def metric(self) -> str:
        """What a distance is: "hamming" or "jaccard"."""
        return self._metric.name

    @property
    def ntotal(self) -> int:
        """How many rows there are."""
        return self._database.count

    def __len__(self) -> int:
        return self.ntotal

    def add(self, rows: ArrayLike) -> None:
        """Append ``rows``, uint8 of shape (n, dimension / 8), which get the next indices.

        Raises ``DataTypeError``, ``ShapeError`` or ``LinkError``.
        """
        given = self._rows("rows", rows)
        self.device.expect_open()
        with self.device.driver.lock:
            self._database.add(given, copied=True)

    def reconstruct(self, i: SupportsIndex) -> Rows:
        """Row ``i``, from 0 to ntotal - 1, as it was added. Raises ``ArrayIndexError``."""
        row = _whole("i", i)
        self.device.expect_open()
        with self.device.driver.lock:
            if not 0 <= row < self.ntotal:
                known = f"expected 0 to {self.ntotal - 1}" if self.ntotal else "there are no rows"
                raise ArrayIndexError(f"i: {row}; {known}")
            return self._database.rows(row, 1).reshape(-1)

    def save(self, file: str | PathLike[str]) -> None:
        """Write all rows and the metric to ``file``, from which `load` makes the index again.

        It is an archive of NumPy's: ``np.load(file)["rows"]`` has the rows. What was in the file
        stays there until the new content is whole. Raises ``SearchError`` or ``LinkError``.
        """
        self.device.expect_open()
        with self.device.driver.lock:
            write_rows(file, self._database.rows(0, self.ntotal), self.metric)

    @classmethod
    def load(cls, device: DeviceLike, file: str | PathLike[str]) -> Self:
        """The index that `save` wrote to ``file``, on ``device``.

        Raises ``SearchError`` for any other file, and what `add` does.
        """
        expect_device(device)
        rows, metric = read_rows(file)
        index = cls(device, 8 * rows.shape[1], metric=metric)
        device.expect_open()
        with device.driver.lock:
            # Nobody else has the rows: those that stay on the host need no copy.
            index._database.add(rows, copied=False)
        return index

    def reset(self) -> None:
        """Forget all rows, and give their memory back."""
        with self.device.driver.lock:
            self._database.clear()

    def search(
        self, queries: ArrayLike, k: int | None = None, *, radius: float | None = None
    ) -> tuple[AnyArray, ...]:
        """The ``k`` nearest rows of each of ``queries``, uint8 of shape (n, dimension / 8).

        Distances and indices (n, k), the nearest first and of equal ones the lower index. Where
        there are fewer rows, the index is -1 and the distance 2**31 - 1, or infinite if it is a
        float. With ``radius``, only rows that are nearer than it count. ``k`` is 10 if neither is
        given; ``radius`` alone gives what `range_search` does. Raises ``SearchError``,
        ``DataTypeError``, ``ShapeError`` or what ``Device`` does.
        """
        return self._found(self._rows("queries", queries), SearchLimits.of(k, radius))

    def range_search(self, queries: ArrayLike, radius: float) -> Ranges:
        """All rows that are nearer than ``radius``, each query's in the order of their indices.

        Limits (n + 1,), distances and indices: those of query i are ``limits[i]`` to
        ``limits[i + 1]`` of both. Raises as `search` does.
        """
        return self._within(self._rows("queries", queries), check_radius(radius))

    def _found(self, queries: Rows, wanted: SearchLimits) -> tuple[AnyArray, ...]:
        if wanted.k is not None:
            return self._nearest(queries, wanted.k, wanted.radius)
        assert wanted.radius is not None
        return self._within(queries, wanted.radius)

    def _nearest(
        self, queries: Rows, k: int, radius: float | None
    ) -> tuple[AnyArray, NDArray[np.int64]]:
        self.device.expect_open()
        with self.device.driver.lock:
            found = Nearest(len(queries), k, self._metric)
            if self._array is None or k > self._array.nearest:
                self._compare(queries, found)
            elif len(queries) and self.ntotal:
                offer_nearest(self.device.driver, self._array, self._database, queries, found)
            if radius is not None:
                found.drop(radius)
            return found.distances, found.indices

    def _within(self, queries: Rows, radius: float) -> Ranges:
        self.device.expect_open()
        with self.device.driver.lock:
            found = Within(len(queries), radius, self._metric)
            self._compare(queries, found)
            return found.result()

    def _compare(self, queries: Rows, found: Found) -> None:
        if len(queries) and self.ntotal:
            offer_distances(self.device.driver, self._database, queries, self._metric, found)

    def _rows(self, name: str, given: ArrayLike) -> Rows:
        """What was given, if it is rows of this index."""
        array = as_rows(name, given)
        if array.shape[1] != self._database.row_bytes:
            raise ShapeError(
                f"{name}: shape {array.shape}; expected (n, {self._database.row_bytes}): rows of"
                f" {self.dimension} bits"
            )
        return array

    def __repr__(self) -> str:
        return (
            f"<bitlane.BinaryIndex: {self.ntotal} rows of {self.dimension} bits, {self.metric},"
            f" on {self.device!r}>"
        )


def search_once(
    device: DeviceLike,
    queries: ArrayLike,
    database: ArrayLike,
    k: int | None,
    radius: float | None,
    metric: str,
) -> tuple[AnyArray, ...]:
    """What ``Device.search`` gives. What of ``database`` stays with the host is not copied."""
    rows = as_rows("database", database)
    index = BinaryIndex(device, 8 * rows.shape[1], metric=metric)
    given = index._rows("queries", queries)
    wanted = SearchLimits.of(k, radius)
    device.expect_open()
    with device.driver.lock:
        index._database.add(rows, copied=False)
        return index._found(given, wanted)


def as_rows(name: str, given: ArrayLike) -> Rows:
    """What was given, if it is rows of bytes."""
    # A file in memory stays one.
    array: AnyArray = given if isinstance(given, np.memmap) else as_array(name, given)
    if array.dtype != np.uint8:
        raise DataTypeError(
            f"{name}: data type {array.dtype}; expected uint8, 8 bits a byte (np.packbits packs"
            " truth values, .view(np.uint8) shows the bytes of others)"
        )
    if array.ndim != 2:
        raise ShapeError(f"{name}: shape {array.shape}; expected (n, bytes): rows of bits")
    return array


def check_k(k: SupportsIndex) -> int:
    wanted = _whole("k", k)
    if not 1 <= wanted <= _MOST_ROWS:
        raise SearchError(f"k: {wanted}; expected 1 to {_MOST_ROWS} rows")
    return wanted


def check_radius(radius: float) -> float:
    real = isinstance(radius, Real) and not isinstance(radius, bool)
    # Of all numbers, only one that is none differs from itself.
    if not real or radius != radius:
        raise SearchError(f"radius: {shown(radius)}; expected a number")
    # Whole numbers may be more than a float holds.
    return float(max(-1, min(radius, _BEYOND_ALL)))


def _whole(name: str, number: SupportsIndex) -> int:
    try:
        return as_index(number)
    except TypeError:
        raise SearchError(f"{name}: {shown(number)}; expected a whole number") from None
