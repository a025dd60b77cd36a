"""Nearest neighbours of handwritten digits by Hamming distance: ``Device.search``.

Each 8 by 8 image becomes one row of 64 bits. The host packs images; it must never compute a
distance other than to check the device's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]

THRESHOLD = 8
"""Lowest value of a pixel, 0 to 16, that counts as ink."""

HELD_OUT = 297
"""Number of the last images, which are the queries: most have other writers than the database."""

SLOW_HELD_OUT = 6
"""Number of queries on a slow device."""

QUERIES_PER_CALL = 33
"""Queries of one call; the progress bar advances after each call."""

NEIGHBOURS = 5
"""Images that are found for each query."""


class Searcher(Protocol):
    """The methods of a device that the search needs."""

    def search(
        self, queries: Rows, database: Rows, k: int, /
    ) -> tuple[npt.NDArray[np.int32], Indices]: ...


@dataclass(frozen=True)
class Digits:
    """Images of digits, their bits and their labels, row by row.

    ``images``: (n, 8, 8), 0 to 16. ``rows``: (n, 8), 64 pixels each. ``labels``: (n,), 0 to 9.
    """

    images: npt.NDArray[np.float64]
    rows: Rows
    labels: Labels

    def __getitem__(self, part: slice) -> "Digits":
        return Digits(self.images[part], self.rows[part], self.labels[part])


@dataclass(frozen=True)
class Neighbours:
    """Result of a search: ``distances`` and ``indices`` (queries, neighbours), nearest first."""

    queries: Digits
    database: Digits
    distances: npt.NDArray[np.int32]
    indices: Indices

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """Whether each query's nearest neighbour carries its label."""
        found = self.database.labels[self.indices[:, 0]]
        return np.equal(found, self.queries.labels)

    @property
    def wrong(self) -> int:
        """Number of neighbours that differ from NumPy's, which sorts all distances."""
        differences = self.queries.rows[:, None] ^ self.database.rows
        every = np.bitwise_count(differences).sum(axis=-1, dtype=np.int32)
        order = np.argsort(every, axis=1, kind="stable")[:, :NEIGHBOURS]
        nearest = np.take_along_axis(every, order, axis=1)
        return int(np.count_nonzero((order != self.indices) | (nearest != self.distances)))


def pack(images: npt.NDArray[np.float64]) -> Rows:
    """One row an image: bit set where a pixel of the (n, 8, 8) images reaches the threshold."""
    return np.packbits(images.reshape(len(images), 64) >= THRESHOLD, axis=1)


def load() -> Digits:
    """All 1,797 images that scikit-learn ships: the test set of UCI's Optical Recognition of
    Handwritten Digits."""
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    return Digits(bunch.images, pack(bunch.images), bunch.target)


def search(
    device: Searcher,
    digits: Digits,
    progress: Callable[[range], Iterable[int]] = iter,
    count: int = HELD_OUT,
) -> Neighbours:
    """Search for the images of the database that are nearest to ``count`` held-out images.

    ``progress`` wraps the loop over calls.
    """
    database, queries = digits[:-HELD_OUT], digits[-HELD_OUT:][:count]
    distances = np.empty((len(queries.rows), NEIGHBOURS), np.int32)
    indices = np.empty(distances.shape, np.int64)
    for start in progress(range(0, len(queries.rows), QUERIES_PER_CALL)):
        some = slice(start, start + QUERIES_PER_CALL)
        distances[some], indices[some] = device.search(
            queries.rows[some], database.rows, NEIGHBOURS
        )
    return Neighbours(queries, database, distances, indices)
