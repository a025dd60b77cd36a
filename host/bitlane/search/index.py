"""A database of rows of bits on a device, and searches in it, with FAISS's shapes and order."""

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import AnyArray
from ..arrays import DeviceLike, expect_device
from ..compiler import Explanation
from ..errors import ArrayIndexError, SearchError, ShapeError
from .blocks import Blocks, Rows, only_rows
from .database import Database
from .finding import Finder
from .ids import Ids, RowIds, as_ids, as_own_ids
from .request import Ranges, SearchLimits, SearchRequest, as_rows, as_whole, check_radius
from .results import metric_of
from .saved import SavedRows, read_rows, write_rows
from .scan import SearchArrayBackend
from .selectors import Selection, selected_rows

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Ids that int64 holds."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """The rows of an index and their ids. One assignment replaces both: all or nothing."""

    blocks: Blocks
    ids: RowIds


_EMPTY: Final = _Contents((), RowIds())


class BinaryIndex:
    """Rows of ``dimension`` bits, a multiple of 8, that are searched by brute force, exactly.

    Rows are stored in the device's memory until it is full. The host stores the others, or their
    file if they are a ``np.memmap``, and sends them to each search. ``metric``: "hamming", the
    number of bits that differ, as int32; or "jaccard", 1 minus the Tanimoto similarity, as
    float64. Threads may share an index: calls wait for each other.

    The id of a row is its number, as in FAISS's ``IndexBinaryFlat``: when a row is removed, later
    ones get lower ids. Rows of `add_with_ids` never change their ids, as in
    ``IndexBinaryIDMap2``. An index has rows of one kind.

    After an error or Ctrl-C an index has the rows that it had. Raises ``SearchError``, or
    ``DataTypeError`` for an object that is not a device.
    """

    is_trained = True
    """True: there is nothing to train. Of FAISS's interface."""

    def __init__(self, device: DeviceLike, dimension: int, *, metric: str = "hamming") -> None:
        expect_device(device)
        self.device = device
        self._metric = metric_of(metric)
        bits = as_whole("dimension", dimension)
        if bits < 8 or bits % 8:
            raise SearchError(f"dimension: {bits} bits; expected a multiple of 8, 8 or more")
        array = SearchArrayBackend.sizes(device.driver.geometry, bits // 8, self._metric)
        stride = array.row_bytes if array else bits // 8
        self._database = Database(device.driver, bits // 8, stride)
        self._finder = Finder(self._database, self._metric, array)
        self._contents = _EMPTY

    @property
    def dimension(self) -> int:
        """Bits of a row."""
        return 8 * self._database.row_bytes

    @property
    def d(self) -> int:
        """The same as `dimension`, which FAISS calls it."""
        return self.dimension

    @property
    def code_size(self) -> int:
        """Bytes of a row."""
        return self._database.row_bytes

    @property
    def metric(self) -> str:
        """The name of the distance: "hamming" or "jaccard"."""
        return self._metric.name

    @property
    def ntotal(self) -> int:
        """The number of rows."""
        return self._contents.ids.count

    @property
    def ids(self) -> Ids:
        """A copy of the ids of all rows, int64 (ntotal,), in the order in which they were added."""
        return self._contents.ids.of_all().copy()

    def __len__(self) -> int:
        return self.ntotal

    def add(self, rows: ArrayLike) -> None:
        """Append ``rows``, uint8 of shape (n, dimension / 8), which get the next numbers as ids.

        Raises ``SearchError`` if the rows of this index have own ids, ``DataTypeError``,
        ``ShapeError`` or ``LinkError``.
        """
        self._add(self._rows("rows", rows), None, copied=True)

    def add_with_ids(self, rows: ArrayLike, ids: ArrayLike) -> None:
        """Append ``rows``, uint8 of shape (n, dimension / 8), with ``ids``, integers (n,).

        An id is any int64 but -1, and differs from all others. Raises ``SearchError`` for an id
        that does not, or if the rows of this index have no own ids; and as `add` does.
        """
        given = self._rows("rows", rows)
        self._add(given, as_own_ids("ids", ids, len(given)), copied=True)

    def _add(self, rows: Rows, own: Ids | None, *, copied: bool) -> None:
        self.device.expect_open()
        with self.device.driver.lock:
            before = self._contents.ids
            ids = before.with_more(len(rows)) if own is None else before.with_own(own)
            self._settle()
            blocks = self._database.add(self._contents.blocks, rows, copied=copied)
            self._contents = _Contents(blocks, ids)

    def remove_ids(self, ids: Selection) -> int:
        """Remove the rows that ``ids`` selects: ids, a selector, or a truth value for each row.

        Returns the number of rows removed; ids without a row are ignored. Memory is freed once more
        than half of it is unused. Raises ``DataTypeError``, ``ShapeError``,
        ``SearchError`` or ``LinkError``.
        """
        self.device.expect_open()
        with self.device.driver.lock:
            contents = self._contents
            gone = selected_rows("ids", ids, contents.ids)
            if not len(gone):
                return 0
            rows = np.delete(np.arange(contents.ids.count), gone)
            blocks = only_rows(contents.blocks, rows)
            if self._database.is_sparse(blocks):
                # What has no memory for both is moved through the host's by the next call.
                blocks = self._database.compact(blocks)
            self._contents = _Contents(blocks, contents.ids.only(rows))
            return len(gone)

    def _settle(self) -> None:
        """Move rows together if they take over twice the memory that they need, or many blocks."""
        contents = self._contents
        if not (
            self._database.is_sparse(contents.blocks)
            or self._database.is_scattered(contents.blocks)
        ):
            return
        blocks = self._database.compact(contents.blocks)
        self._contents = contents = replace(contents, blocks=blocks)
        if self._database.is_sparse(blocks):
            # Without memory for both, in two steps: the first one frees the device's.
            blocks = self._database.to_host(blocks)
            self._contents = contents = replace(contents, blocks=blocks)
            self._contents = replace(contents, blocks=self._database.to_device(blocks))

    def merge_from(self, other: "BinaryIndex", add_id: SupportsIndex = 0) -> None:
        """Move the rows of ``other`` behind these, and leave it empty.

        ``add_id`` is added to own ids of ``other``; without own ids it is 0, and rows are numbered
        on. Raises ``SearchError`` for an index of other rows or another metric, an id that both
        have or that is beyond int64, and as `add` does.
        """
        shift = as_whole("add_id", add_id)
        self._expect_alike(other)
        for device in (self.device, other.device):
            device.expect_open()
        # In one order, so that two threads do not wait for each other.
        first, second = sorted((self.device.driver, other.device.driver), key=id)
        with first.lock, second.lock:
            theirs = other._contents
            if theirs.ids.own is None:
                if shift and theirs.ids.count:
                    raise SearchError(f"add_id: {shift}; expected 0, as the rows have no own ids")
                ids = self._contents.ids.with_more(theirs.ids.count)
            else:
                ids = self._contents.ids.with_own(_shifted(theirs.ids.own, shift))
            self._settle()
            if first is second:
                blocks = self._contents.blocks + theirs.blocks
            else:
                rows = other._read(np.arange(theirs.ids.count))
                blocks = self._database.add(self._contents.blocks, rows, copied=False)
            merged = _Contents(blocks, ids)
            # With no call in between, in which Ctrl-C could come.
            self._contents = merged
            other._contents = _EMPTY

    def _expect_alike(self, other: "BinaryIndex") -> None:
        """Raise ``SearchError`` unless the rows of ``other`` can be rows of this index."""
        if not isinstance(other, BinaryIndex) or other is self:
            raise SearchError(f"other: {other!r}; expected another BinaryIndex")
        mine, theirs = (f"{x.dimension} bits, {x.metric}" for x in (self, other))
        if mine != theirs:
            raise SearchError(f"other: an index of {theirs}; expected one of {mine}")

    def reconstruct(self, i: SupportsIndex) -> Rows:
        """Return the row with id ``i``, as it was added. Raises ``ArrayIndexError``."""
        return self._reconstruct("i", _ids_from("i", as_whole("i", i), 1)).reshape(-1)

    def reconstruct_n(self, n0: SupportsIndex = 0, ni: SupportsIndex = -1) -> Rows:
        """Return the rows with the ``ni`` ids from ``n0`` on, uint8 (ni, dimension / 8).

        -1: as many as there are rows, less ``n0``. Raises ``ArrayIndexError`` for an id that no row
        has, or ``SearchError``.
        """
        first, count = as_whole("n0", n0), as_whole("ni", ni)
        if count == -1:
            count = max(0, self.ntotal - first)
        if not 0 <= count <= self.ntotal:
            raise SearchError(f"ni: {count}; expected 0 to {self.ntotal} rows")
        return self._reconstruct("n0", _ids_from("n0", first, count))

    def reconstruct_batch(self, ids: ArrayLike) -> Rows:
        """Return the rows with ``ids``, integers (n,), in their order: uint8 (n, dimension / 8).

        Raises ``ArrayIndexError`` for an id that no row has, ``DataTypeError`` or ``ShapeError``.
        """
        return self._reconstruct("ids", as_ids("ids", ids))

    def _reconstruct(self, name: str, ids: Ids) -> Rows:
        self.device.expect_open()
        with self.device.driver.lock:
            rows, places = np.unique(self._contents.ids.rows(name, ids), return_inverse=True)
            return self._read(rows)[places]

    def _read(self, rows: Ids) -> Rows:
        return self._database.read(self._contents.blocks, rows)

    def save(self, file: str | PathLike[str]) -> None:
        """Write all rows, their own ids and the metric to ``file``, from which `load` reads them.

        It is an archive of NumPy's: ``np.load(file)["rows"]`` has the rows, ``["ids"]`` own ids.
        The file keeps its old content until the new one is complete. Raises ``SearchError`` or
        ``LinkError``.
        """
        self.device.expect_open()
        with self.device.driver.lock:
            ids = self._contents.ids
            write_rows(file, SavedRows(self._read(np.arange(ids.count)), self.metric, ids.own))

    @classmethod
    def load(cls, device: DeviceLike, file: str | PathLike[str]) -> Self:
        """Return the index that `save` wrote to ``file``, on ``device``.

        Reads files of earlier versions. Raises ``SearchError`` for any other file, and what `add`
        does.
        """
        expect_device(device)
        saved = read_rows(file)
        index = cls(device, 8 * saved.rows.shape[1], metric=saved.metric)
        # No caller has these rows: those that stay on the host need no copy.
        index._add(saved.rows, saved.ids, copied=False)
        return index

    def reset(self) -> None:
        """Remove all rows, and free their memory."""
        with self.device.driver.lock:
            self._contents = _EMPTY

    def search(
        self,
        queries: ArrayLike,
        k: int | None = None,
        *,
        radius: float | None = None,
        select: Selection | None = None,
    ) -> tuple[AnyArray, ...]:
        """Find the ``k`` nearest rows of each of ``queries``, uint8 of shape (n, dimension / 8).

        Returns distances and ids (n, k), the nearest first, of equal ones the one that was added
        first. Where fewer rows exist, the id is -1 and the distance 2**31 - 1, or infinite if it is
        a float. With ``radius``, only rows that are nearer than it count. ``k`` is 10 if neither is
        given; ``radius`` alone gives what `range_search` does.

        ``select``: the rows that count, as a selector, a truth value for each row, or ids. Raises
        ``SearchError``, ``DataTypeError``, ``ShapeError`` or what ``Device`` does.
        """
        limits = SearchLimits.of(k, radius, self._metric)
        return self._search(self._rows("queries", queries), limits, select)

    def range_search(
        self, queries: ArrayLike, radius: float, *, select: Selection | None = None
    ) -> Ranges:
        """Find all rows that are nearer than ``radius``, each query's in the order of the rows.

        ``radius`` is a whole number of bits for "hamming", any number for "jaccard".
        Returns limits (n + 1,), distances and ids: those of query i are ``limits[i]`` to
        ``limits[i + 1]`` of both. ``select`` as for `search`. Raises as `search` does.
        """
        limits = SearchLimits(None, check_radius(radius, self._metric))
        found: Any = self._search(self._rows("queries", queries), limits, select)
        return found  # type: ignore[no-any-return]

    def assign(self, queries: ArrayLike, k: int = 1) -> NDArray[np.int64]:
        """Return the ids of `search` alone, int64 (n, k). Raises as `search` does."""
        return self.search(queries, k)[1]

    def explain(
        self,
        queries: ArrayLike,
        k: int | None = None,
        *,
        radius: float | None = None,
        select: Selection | None = None,
    ) -> Explanation:
        """Return a table of how `search` would access the rows, and of its commands.

        Executes nothing; cycles are estimated. Raises as `search` does.
        """
        limits = SearchLimits.of(k, radius, self._metric)
        given = self._rows("queries", queries)
        self.device.expect_open()
        with self.device.driver.lock:
            contents = self._contents
            rows = None if select is None else selected_rows("select", select, contents.ids)
            return self._finder.explain(contents.blocks, rows, given, limits)

    def _search(
        self, queries: Rows, limits: SearchLimits, select: Selection | None = None
    ) -> tuple[AnyArray, ...]:
        self.device.expect_open()
        with self.device.driver.lock:
            ids = self._contents.ids
            rows = None if select is None else selected_rows("select", select, ids)
            limits.expect_room(len(queries), ids.count if rows is None else len(rows), self._metric)
            self._settle()
            contents = self._contents
            if rows is None and self._finder.gathers(contents.blocks, queries, limits):
                # Gaps cost every search what they cost once if the rows are moved together.
                blocks = self._database.compact(contents.blocks)
                self._contents = contents = replace(contents, blocks=blocks)
            *found, numbers = self._finder.find(contents.blocks, rows, queries, limits)
            if rows is not None and len(rows):
                numbers = np.where(numbers < 0, numbers, rows[numbers])
            return *found, ids.of(numbers)

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


def _ids_from(name: str, first: int, count: int) -> Ids:
    """Return ``count`` ids from ``first`` on. Raises ``ArrayIndexError`` beyond int64."""
    if not _LEAST <= first <= _MOST - max(0, count - 1):
        raise ArrayIndexError(f"{name}: {first}; no row has this id")
    return first + np.arange(count, dtype=np.int64)


def _shifted(ids: Ids, shift: int) -> Ids:
    """Return ``ids`` + ``shift``. Raises ``SearchError`` for ids that no row may have."""
    if not len(ids) or not shift:
        return ids
    if int(ids.min()) + shift < _LEAST or int(ids.max()) + shift > _MOST:
        raise SearchError(f"add_id: {shift}; expected sums with the ids that int64 holds")
    return as_own_ids("add_id + ids", ids + shift, len(ids))


def search_once(
    device: DeviceLike,
    request: SearchRequest,
    database: ArrayLike,
    ids: ArrayLike | None,
    select: Selection | None,
) -> tuple[AnyArray, ...]:
    """Compute ``Device.search``. Rows of ``database`` that stay on the host are not copied."""
    rows = as_rows("database", database)
    index = BinaryIndex(device, 8 * rows.shape[1], metric=request.metric.name)
    queries = index._rows("queries", request.queries)
    request.expect_rows(len(rows), ids, select)
    device.expect_open()
    with device.driver.lock:
        blocks = index._database.add((), rows, copied=False, chosen=request.chosen)
        *found, numbers = index._finder.find(blocks, None, queries, request.limits)
        return *found, request.ids.of(numbers)
