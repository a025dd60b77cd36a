"""The ids of an index's rows: their numbers, or ids that its user gave them."""

from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments.operands import as_array
from ..errors import ArrayIndexError, DataTypeError, SearchError, ShapeError

Ids = NDArray[np.int64]

NO_ROW: Final = -1
"""The id of an entry of a result that has no row."""

_UNSORTED: Final = 1024
"""Most ids, beside a quarter of all, that are sorted anew at each look-up."""


def as_ids(name: str, given: ArrayLike) -> Ids:
    """Return ``given`` as ids. Raises ``DataTypeError``, ``ShapeError`` or ``SearchError``."""
    array = as_array(name, given)
    if array.ndim != 1:
        raise ShapeError(f"{name}: shape {array.shape}; expected (n,)")
    if not array.size:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise DataTypeError(f"{name}: data type {array.dtype}; expected integers of 64 bits")
    most = np.iinfo(np.int64).max
    if array.dtype.kind == "u" and int(array.max()) > most:
        raise SearchError(f"{name}: {array.max()}; expected at most {most}, as int64 holds")
    return array.astype(np.int64)


def as_own_ids(name: str, given: ArrayLike, rows: int) -> Ids:
    """Return ``given`` as ids of as many ``rows``. Raises as `as_ids` does, also for -1."""
    ids = as_ids(name, given)
    if len(ids) != rows:
        raise ShapeError(f"{name}: {len(ids)}; expected {rows}, one for each row")
    if (ids == NO_ROW).any():
        raise SearchError(f"{name}: {NO_ROW}; expected others, as it is the id of no row")
    return ids


class RowIds:
    """The ids of ``count`` rows in order: 0 to count - 1, or ``own`` ids, each of which differs.

    It never changes; methods return another one.
    """

    def __init__(self, count: int = 0, own: Ids | None = None) -> None:
        self.count = count
        self.own = own
        self._sorted: tuple[Ids, NDArray[np.intp]] | None = None
        """The first ids in ascending order, and their rows."""

    def of_all(self) -> Ids:
        """Return the ids of all rows."""
        return np.arange(self.count) if self.own is None else self.own

    def of(self, rows: Ids) -> Ids:
        """Return the ids of ``rows``; -1 for -1."""
        if self.own is None:
            return rows
        if not self.count:
            return np.full_like(rows, NO_ROW)
        # The last row stands in for -1, and is replaced.
        return np.where(rows < 0, NO_ROW, self.own[rows])

    def rows(self, name: str, ids: Ids) -> Ids:
        """Return the rows with ``ids``. Raises ``ArrayIndexError`` if one has none."""
        if self.own is None:
            missing = (ids < 0) | (ids >= self.count)
            found = ids
        else:
            found = self._find(ids)
            missing = found < 0
        if missing.any():
            known = f"expected 0 to {self.count - 1}" if self.own is None else "no row has this id"
            if not self.count:
                known = "the index is empty"
            raise ArrayIndexError(f"{name}: {ids[np.argmax(missing)]}; {known}")
        return found

    def with_more(self, rows: int) -> Self:
        """Return these ids and those of ``rows`` more. Raises ``SearchError`` for own ids."""
        if self.own is not None and rows:
            raise SearchError(
                "rows: without ids; expected add_with_ids, as the rows of this index have own ids"
            )
        return type(self)(self.count + rows, self.own)

    def with_own(self, ids: Ids) -> Self:
        """Return these ids and ``ids``, in this order. Raises ``SearchError`` for one twice."""
        if not len(ids):
            return self
        if self.own is None and self.count:
            raise SearchError(
                f"ids: of {len(ids)} rows; expected add, as the rows of this index have no own ids"
            )
        ordered = np.sort(ids)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if self.count and not twice.size:
            twice = ids[self._find(ids) >= 0]
        if twice.size:
            raise SearchError(f"ids: {twice[0]} twice; expected each id once in an index")
        before = self.own if self.own is not None else np.empty(0, np.int64)
        more = type(self)(self.count + len(ids), np.concatenate([before, ids]))
        more._sorted = self._sorted
        return more

    def only(self, rows: Ids) -> Self:
        """Return the ids of ``rows`` alone; without own ids, they are numbered anew."""
        if not len(rows):
            return type(self)()
        return type(self)(len(rows), None if self.own is None else self.own[rows])

    def _find(self, ids: Ids) -> Ids:
        """Return the rows with ``ids``, -1 where there is none."""
        assert self.own is not None
        ordered = np.empty(0, np.int64), np.empty(0, np.intp)
        if self._sorted is not None:
            ordered = self._sorted
        first = len(ordered[0])
        if self.count - first > max(_UNSORTED, self.count // 4):
            order = np.argsort(self.own)
            ordered = self._sorted = self.own[order], order
            first = self.count
        found = np.full(len(ids), NO_ROW, np.int64)
        last = np.argsort(self.own[first:]) + first
        for numbers, rows in (ordered, (self.own[last], last)):
            if len(numbers):
                near = np.minimum(np.searchsorted(numbers, ids), len(numbers) - 1)
                found = np.where(numbers[near] == ids, rows[near], found)
        return found
