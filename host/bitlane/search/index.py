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
from ..arguments.operands import as_array, shown
from ..arrays.value import DeviceLike, expect_device
from ..errors import ArrayIndexError, DataTypeError, SearchError, ShapeError
from .database import Database, Rows, read_rows, write_rows
from .results import DistanceSink, Metric, TopK, WithinRadius, expect_rows, metric_of
from .scan import RowSumsBackend, ScanBackend, SearchArrayBackend, scan


class SearchRequest:
    """The arguments of ``Device.search`` but the database, checked. Raises as that does."""

    def __init__(
        self, queries: ArrayLike, k: int | None, radius: float | None, metric: str
    ) -> None:
        self.queries: Rows = as_rows("queries", queries)
        self._metric = metric_of(metric)
        self._limits = SearchLimits.of(k, radius, self._metric)

    def expect_rows(self, rows: int) -> None:
        """Raise ``SearchError`` if ``k`` is far beyond the ``rows`` of the database."""
        self._limits.expect_rows(len(self.queries), rows)

    def keywords(self, rows: int) -> dict[str, Any]:
        """Return the keywords of ``Device.search`` for a chunk of ``rows`` of the database."""
        k = self._limits.k
        most = None if k is None else min(k, max(1, rows))
        return {"k": most, "radius": self._limits.radius, "metric": self._metric.name}

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """Data types of the arrays of a result."""
        found = (self._metric.dtype, np.dtype(np.int64))
        return found if self._limits.k is not None else (np.dtype(np.uint64), *found)

    @property
    def shapes(self) -> tuple[tuple[float, ...], ...]:
        """Shapes of the arrays of a result; NaN for an unknown number of rows."""
        count, k = len(self.queries), self._limits.k
        return ((count + 1,), (np.nan,), (np.nan,)) if k is None else ((count, k), (count, k))

    def join(
        self, answers: Iterable[tuple[int, int, tuple[AnyArray, ...]]]
    ) -> tuple[AnyArray, ...]:
        """Join the results of chunks to the result of the whole database.

        ``answers``: for each chunk its first query, its first row, and a device's result. The
        answers for a query are in the order of the rows.
        """
        k, radius = self._limits.k, self._limits.radius
        if k is not None:
            top = TopK(len(self.queries), k, self._metric)
            for query, row, (distances, indices) in answers:
                # Empty entries have the farthest distance: a stable sort leaves them last.
                top.merge(query, distances, indices + row)
            return top.distances, top.indices
        assert radius is not None
        near = WithinRadius(len(self.queries), radius, self._metric)
        for query, row, (limits, distances, indices) in answers:
            near.merge(query, limits, distances, indices + row)
        return near.result()


_MOST_ROWS = 2**31 - 1
"""Largest ``k``; the result is allocated in full."""

_USUAL_K = 10
"""Default of ``k`` without a ``radius``."""

_BEYOND_ALL = 2.0**64
"""A radius beyond all distances."""

Ranges = tuple[NDArray[np.uint64], AnyArray, NDArray[np.int64]]
"""Limits, distances and indices: those of query i from ``limits[i]`` to ``limits[i + 1]``."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The number of nearest rows that a search returns, and their largest distance."""

    k: int | None
    """None: all rows that are nearer than ``radius``."""
    radius: float | None

    @classmethod
    def of(cls, k: SupportsIndex | None, radius: float | None, metric: Metric) -> Self:
        """Check the limits of a search; the default is ``k`` = 10. Raises ``SearchError``."""
        if k is None and radius is None:
            k = _USUAL_K
        return cls(
            None if k is None else check_k(k),
            None if radius is None else check_radius(radius, metric),
        )

    def expect_rows(self, queries: int, rows: int) -> None:
        """Raise ``SearchError`` if ``k`` is far beyond ``rows``."""
        if self.k is not None:
            expect_rows(queries, self.k, rows)


class BinaryIndex:
    """Rows of ``dimension`` bits, a multiple of 8, that are searched by brute force, exactly.

    Rows are stored on the device as far as its memory goes, others on the host, or in their file
    if they are a ``np.memmap``; each search sends those. ``metric``: "hamming", the number
    of bits that differ, as int32; or "jaccard", 1 minus what ``Device.jaccard`` gives, the
    Tanimoto similarity, as float64. Threads may share it: calls wait for each other.

    Raises ``SearchError``, or ``DataTypeError`` for an object that is not a device.
    """

    def __init__(self, device: DeviceLike, dimension: int, *, metric: str = "hamming") -> None:
        expect_device(device)
        self.device = device
        self._metric = metric_of(metric)
        bits = _as_whole("dimension", dimension)
        if bits < 8 or bits % 8:
            raise SearchError(f"dimension: {bits} bits; expected a multiple of 8, 8 or more")
        self._array = SearchArrayBackend.sizes(device.driver.geometry, bits // 8, self._metric)
        stride = self._array.row_bytes if self._array else bits // 8
        self._database = Database(device.driver, bits // 8, stride)

    @property
    def dimension(self) -> int:
        """Bits of a row."""
        return 8 * self._database.row_bytes

    @property
    def metric(self) -> str:
        """The name of the distance: "hamming" or "jaccard"."""
        return self._metric.name

    @property
    def ntotal(self) -> int:
        """The number of rows."""
        return self._database.count

    def __len__(self) -> int:
        return self.ntotal

    def add(self, rows: ArrayLike) -> None:
        """Append ``rows``, uint8 of shape (n, dimension / 8), which get the next indices.

        After an error or Ctrl-C no row has been added. Raises ``DataTypeError``, ``ShapeError`` or
        ``LinkError``.
        """
        given = self._rows("rows", rows)
        self.device.expect_open()
        with self.device.driver.lock:
            self._database.add(given, copied=True)

    def reconstruct(self, i: SupportsIndex) -> Rows:
        """Row ``i``, from 0 to ntotal - 1, as it was added. Raises ``ArrayIndexError``."""
        row = _as_whole("i", i)
        self.device.expect_open()
        with self.device.driver.lock:
            if not 0 <= row < self.ntotal:
                known = f"expected 0 to {self.ntotal - 1}" if self.ntotal else "there are no rows"
                raise ArrayIndexError(f"i: {row}; {known}")
            return self._database.rows(row, 1).reshape(-1)

    def save(self, file: str | PathLike[str]) -> None:
        """Write all rows and the metric to ``file``, from which `load` restores the index.

        It is an archive of NumPy's: ``np.load(file)["rows"]`` has the rows. The file keeps its old
        content until the new one is complete. Raises ``SearchError`` or ``LinkError``.
        """
        self.device.expect_open()
        with self.device.driver.lock:
            write_rows(file, self._database.rows(0, self.ntotal), self.metric)

    @classmethod
    def load(cls, device: DeviceLike, file: str | PathLike[str]) -> Self:
        """Return the index that `save` wrote to ``file``, on ``device``.

        Raises ``SearchError`` for any other file, and what `add` does.
        """
        expect_device(device)
        rows, metric = read_rows(file)
        index = cls(device, 8 * rows.shape[1], metric=metric)
        device.expect_open()
        with device.driver.lock:
            # No caller has these rows: those that stay on the host need no copy.
            index._database.add(rows, copied=False)
        return index

    def reset(self) -> None:
        """Remove all rows, and free their memory."""
        with self.device.driver.lock:
            self._database.clear()

    def search(
        self, queries: ArrayLike, k: int | None = None, *, radius: float | None = None
    ) -> tuple[AnyArray, ...]:
        """Find the ``k`` nearest rows of each of ``queries``, uint8 of shape (n, dimension / 8).

        Returns distances and indices (n, k), the nearest first, ties by index. Where fewer rows
        exist, the index is -1 and the distance 2**31 - 1, or infinite if it is a
        float. With ``radius``, only rows that are nearer than it count. ``k`` is 10 if neither is
        given; ``radius`` alone gives what `range_search` does. Raises ``SearchError``,
        ``DataTypeError``, ``ShapeError`` or what ``Device`` does.
        """
        limits = SearchLimits.of(k, radius, self._metric)
        return self._search(self._rows("queries", queries), limits)

    def range_search(self, queries: ArrayLike, radius: float) -> Ranges:
        """Find all rows that are nearer than ``radius``, each query's in the order of indices.

        ``radius`` is a whole number of bits for "hamming", any number for "jaccard".
        Returns limits (n + 1,), distances and indices: those of query i are ``limits[i]`` to
        ``limits[i + 1]`` of both. Raises as `search` does.
        """
        return self._within(self._rows("queries", queries), check_radius(radius, self._metric))

    def _search(self, queries: Rows, limits: SearchLimits) -> tuple[AnyArray, ...]:
        if limits.k is not None:
            return self._nearest(queries, limits.k, limits.radius)
        assert limits.radius is not None
        return self._within(queries, limits.radius)

    def _nearest(
        self, queries: Rows, k: int, radius: float | None
    ) -> tuple[AnyArray, NDArray[np.int64]]:
        self.device.expect_open()
        with self.device.driver.lock:
            expect_rows(len(queries), k, self.ntotal)
            top = TopK(len(queries), k, self._metric)
            if self._array is None or k > self._array.nearest:
                backend = self._sums(top)
            else:
                backend = SearchArrayBackend(self.device.driver.geometry, self._array, top)
            self._scan(queries, backend)
            if radius is not None:
                top.drop(radius)
            return top.distances, top.indices

    def _within(self, queries: Rows, radius: float) -> Ranges:
        self.device.expect_open()
        with self.device.driver.lock:
            near = WithinRadius(len(queries), radius, self._metric)
            self._scan(queries, self._sums(near))
            return near.result()

    def _sums(self, sink: DistanceSink) -> ScanBackend:
        sizes = self._database.row_bytes, self._database.stride
        return RowSumsBackend(self.device.driver.geometry, *sizes, self._metric, sink)

    def _scan(self, queries: Rows, backend: ScanBackend) -> None:
        if len(queries) and self.ntotal:
            scan(self.device.driver, self._database, queries, backend)

    def _rows(self, name: str, given: ArrayLike) -> Rows:
        """Return ``given`` as rows of this index. Raises ``ShapeError``."""
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
    """Compute ``Device.search``. Rows of ``database`` that stay on the host are not copied."""
    rows = as_rows("database", database)
    index = BinaryIndex(device, 8 * rows.shape[1], metric=metric)
    given = index._rows("queries", queries)
    limits = SearchLimits.of(k, radius, index._metric)
    limits.expect_rows(len(given), len(rows))
    device.expect_open()
    with device.driver.lock:
        index._database.add(rows, copied=False)
        return index._search(given, limits)


def as_rows(name: str, given: ArrayLike) -> Rows:
    """Return ``given`` as rows of bytes. Raises ``DataTypeError`` or ``ShapeError``."""
    # A memory-mapped file stays one.
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
    """Return ``k`` as an integer in its range. Raises ``SearchError``."""
    wanted = _as_whole("k", k)
    if not 1 <= wanted <= _MOST_ROWS:
        raise SearchError(f"k: {wanted}; expected 1 to {_MOST_ROWS} rows")
    return wanted


def check_radius(radius: float, metric: Metric) -> float:
    """Return ``radius`` as a float that no distance exceeds by rounding. Raises ``SearchError``.

    It counts bits for a metric of integers: a whole number, or infinity.
    """
    real = isinstance(radius, Real) and not isinstance(radius, bool)
    # Only NaN differs from itself.
    if not real or radius != radius:
        raise SearchError(f"radius: {shown(radius)}; expected a number")
    # An integer may exceed a float's range.
    limit = float(max(-1, min(radius, _BEYOND_ALL)))
    if metric.dtype.kind == "i" and (limit < 0 or not limit.is_integer()):
        raise SearchError(f"radius: {shown(radius)}; expected a number of bits, 0 or more, whole")
    return limit


def _as_whole(name: str, number: SupportsIndex) -> int:
    try:
        return as_index(number)
    except TypeError:
        raise SearchError(f"{name}: {shown(number)}; expected a whole number") from None
