"""One search in a database whose parts are in several places: what is asked, and the one answer.

Checks what is asked; the work is done where the rows are.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..jobs.operands import AnyArray
from .database import Rows
from .index import as_distance, as_rows, as_rows_wanted
from .merging import Nearest, Within
from .metrics import metric_of

__all__ = ["Asked"]


class Asked:
    """A search as ``Device.search`` has it, without its database. Raises as that does."""

    def __init__(self, queries: ArrayLike, k: int, radius: float | None, metric: str) -> None:
        self.queries: Rows = as_rows("queries", queries)
        self._metric = metric_of(metric)
        self._k = as_rows_wanted(k)
        self._radius = None if radius is None else as_distance(radius)

    @property
    def keywords(self) -> dict[str, Any]:
        """Of ``Device.search``, for each part."""
        return {"k": self._k, "radius": self._radius, "metric": self._metric.name}

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """Of the arrays of an answer."""
        found = (self._metric.dtype, np.dtype(np.int64))
        return found if self._radius is None else (np.dtype(np.uint64), *found)

    def joined(
        self, answers: Iterable[tuple[int, int, tuple[AnyArray, ...]]]
    ) -> tuple[AnyArray, ...]:
        """What ``Device.search`` gives for the whole database.

        ``answers``: for each part the first of its queries, the first of its rows, and what a
        device has found in it. Those of a query stand in the order of the rows.
        """
        if self._radius is None:
            nearest = Nearest(len(self.queries), self._k, self._metric)
            for query, row, (distances, indices) in answers:
                # Places that no row fills come behind those that were there at first.
                nearest.merge(query, distances, indices + row)
            return nearest.distances, nearest.indices
        within = Within(len(self.queries), self._radius, self._metric)
        for query, row, (limits, distances, indices) in answers:
            within.merge(query, limits, distances, indices + row)
        return within.result()
