"""A database of rows of bits on a device, and searches in it, with FAISS's shapes and order."""

from os import PathLike
from typing import Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import AnyArray
from ..arrays.value import DeviceLike, expect_device
from ..errors import ArrayIndexError, SearchError, ShapeError
from .database import Database, Rows
from .request import SearchLimits, as_rows, as_whole, check_radius
from .results import DistanceSink, TopK, WithinRadius, expect_rows, metric_of
from .saved import read_rows, write_rows
from .scan import RowSumsBackend, ScanBackend, SearchArrayBackend, scan

Ranges = tuple[NDArray[np.uint64], AnyArray, NDArray[np.int64]]
"""Limits, distances and indices: those of query i from ``limits[i]`` to ``limits[i + 1]``."""


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
        bits = as_whole("dimension", dimension)
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
        row = as_whole("i", i)
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
