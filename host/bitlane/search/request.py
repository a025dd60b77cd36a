"""The arguments of a search, checked, and the results of its chunks, joined."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from operator import index as as_index
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import AnyArray
from ..arguments.operands import as_array, shown
from ..errors import DataTypeError, SearchError, ShapeError
from .blocks import Numbers, Rows
from .ids import RowIds, as_own_ids
from .results import Metric, TopK, WithinRadius, expect_room, metric_of
from .selectors import Selection, selected_rows

_MOST_ROWS = 2**31 - 1
"""Largest ``k``; the result is allocated in full."""

_USUAL_K = 10
"""Default of ``k`` without a ``radius``."""

_BEYOND_ALL = 2.0**64
"""A radius beyond all distances."""


Ranges = tuple[NDArray[np.uint64], AnyArray, NDArray[np.int64]]
"""Limits, distances and ids: those of query i from ``limits[i]`` to ``limits[i + 1]``."""


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

    def expect_room(self, queries: int, rows: int, metric: Metric) -> None:
        """Raise ``SearchError`` if ``k`` is far beyond ``rows``, or beyond the host's memory."""
        if self.k is not None:
            expect_room(queries, self.k, rows, metric)


class SearchRequest:
    """The arguments of ``Device.search`` but the database, checked. Raises as that does."""

    def __init__(
        self, queries: ArrayLike, k: int | None, radius: float | None, metric: str
    ) -> None:
        self.queries: Rows = as_rows("queries", queries)
        self.metric = metric_of(metric)
        self.limits = SearchLimits.of(k, radius, self.metric)
        self.ids = RowIds()
        """The ids of the rows to search."""
        self.chosen: Numbers | None = None
        """The numbers of the rows to search in the database, ascending; None: all."""

    def expect_rows(self, rows: int, ids: ArrayLike | None, select: Selection | None) -> None:
        """Take the number of ``rows`` of the database, their ``ids``, and which of them to search.

        Raises ``SearchError`` if ``k`` is too large for them, and what ``add_with_ids`` does for
        ``ids`` and ``BinaryIndex.search`` for ``select``.
        """
        self.ids = RowIds(rows)
        if ids is not None:
            self.ids = RowIds().with_own(as_own_ids("ids", ids, rows))
        if select is not None:
            self.chosen = selected_rows("select", select, self.ids)
            self.ids = RowIds(len(self.chosen), self.ids.of_all()[self.chosen])
        self.limits.expect_room(len(self.queries), self.ids.count, self.metric)

    def rows_of(self, rows: AnyArray, chunk: slice) -> AnyArray:
        """Return the ``chunk`` of the rows to search, of ``rows`` of the database."""
        return rows[chunk if self.chosen is None else self.chosen[chunk]]

    def keywords(self, rows: int) -> dict[str, Any]:
        """Return the keywords of ``Device.search`` for a chunk of ``rows`` rows."""
        k = self.limits.k
        most = None if k is None else min(k, max(1, rows))
        return {"k": most, "radius": self.limits.radius, "metric": self.metric.name}

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """Data types of the arrays of a result."""
        found = (self.metric.dtype, np.dtype(np.int64))
        return found if self.limits.k is not None else (np.dtype(np.uint64), *found)

    @property
    def shapes(self) -> tuple[tuple[float, ...], ...]:
        """Shapes of the arrays of a result; NaN for an unknown number of rows."""
        count, k = len(self.queries), self.limits.k
        return ((count + 1,), (np.nan,), (np.nan,)) if k is None else ((count, k), (count, k))

    def join(
        self, answers: Iterable[tuple[int, int, tuple[AnyArray, ...]]]
    ) -> tuple[AnyArray, ...]:
        """Join the results of chunks of the rows to search.

        ``answers``: for each chunk its first query, its first row among the rows to search, and a
        device's result. The answers for a query are in the order of the rows.
        """
        k, radius = self.limits.k, self.limits.radius
        if k is not None:
            top = TopK(len(self.queries), k, self.metric)
            for query, row, (distances, indices) in answers:
                # Empty entries have the farthest distance: a stable sort leaves them last.
                top.merge(query, distances, indices + row)
            return top.distances, self.ids.of(top.indices)
        assert radius is not None
        near = WithinRadius(len(self.queries), radius, self.metric)
        for query, row, (limits, distances, indices) in answers:
            near.merge(query, limits, distances, indices + row)
        limits, distances, indices = near.result()
        return limits, distances, self.ids.of(indices)


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
    wanted = as_whole("k", k)
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


def as_whole(name: str, number: SupportsIndex) -> int:
    try:
        return as_index(number)
    except TypeError:
        raise SearchError(f"{name}: {shown(number)}; expected a whole number") from None
