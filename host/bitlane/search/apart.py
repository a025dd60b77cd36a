"""One search in a database whose parts are in several places: what is asked, and the one answer.

Checks what is asked; the work is done where the rows are.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..jobs.operands import AnyArray
from .database import Rows
from .index import Wanted, as_rows
from .merging import Nearest, Within
from .metrics import metric_of

__all__ = ["Asked"]


class Asked:
    """A search as ``Device.search`` has it, without its database. Raises as that does."""

    def __init__(
        self, queries: ArrayLike, k: int | None, radius: float | None, metric: str
    ) -> None:
        self.queries: Rows = as_rows("queries", queries)
        self._metric = metric_of(metric)
        self._wanted = Wanted.of(k, radius)

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

    def joined(
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
