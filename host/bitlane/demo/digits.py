"""Nearest neighbours of handwritten digits by Hamming distance, the distances by the device.

Each 8 by 8 image becomes one 64-bit word. The host packs images and picks the smallest distances;
it must never compute a distance other than to check the device's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Digits", "HammingDevice", "Search", "load", "pack", "search"]

Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]

THRESHOLD = 8
"""A pixel of 0 to 16 counts as ink from here on."""

HELD_OUT = 297
"""The last images are the queries, so that writers differ from most of the database's."""

QUERIES_PER_CALL = 33
"""Bounds the memory that the words between XOR and COUNT take, and moves the progress bar."""


class HammingDevice(Protocol):
    """What the search needs of a device."""

    def bit_xor(self, a: Words, b: Words, /) -> npt.NDArray[np.generic]: ...

    def bit_count(
        self, a: npt.NDArray[np.generic], /, dtype: type[np.uint8]
    ) -> npt.NDArray[np.generic]: ...


@dataclass(frozen=True)
class Digits:
    """Images of digits, their packed words and their labels, row by row.

    ``images``: (n, 8, 8), 0 to 16. ``words``: (n,), 64 pixels each. ``labels``: (n,), 0 to 9.
    """

    images: npt.NDArray[np.float64]
    words: Words
    labels: Labels

    def __getitem__(self, rows: slice) -> "Digits":
        return Digits(self.images[rows], self.words[rows], self.labels[rows])


@dataclass(frozen=True)
class Search:
    """What the device found: ``distances`` (queries, database) and what follows from them."""

    queries: Digits
    database: Digits
    distances: Counts

    def neighbours(self, count: int) -> npt.NDArray[np.intp]:
        """Rows of the ``count`` nearest images a query, nearest first, ties by row."""
        return np.argsort(self.distances, axis=1, kind="stable")[:, :count]

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """Whether each query's nearest neighbour carries its label."""
        found = self.database.labels[self.neighbours(1)[:, 0]]
        return np.equal(found, self.queries.labels)

    @property
    def wrong_distances(self) -> int:
        """How many distances differ from those that NumPy computes on the host."""
        expected = np.bitwise_count(self.queries.words[:, None] ^ self.database.words)
        return int(np.count_nonzero(expected != self.distances))


def pack(images: npt.NDArray[np.float64]) -> Words:
    """One word an image: bit set where a pixel of the (n, 8, 8) images reaches the threshold."""
    ink = images.reshape(len(images), 64) >= THRESHOLD
    return np.packbits(ink, axis=1).view(np.uint64)[:, 0]


def load() -> Digits:
    """All 1,797 images that scikit-learn ships: the test set of UCI's Optical Recognition of
    Handwritten Digits."""
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    return Digits(bunch.images, pack(bunch.images), bunch.target)


def search(
    device: HammingDevice,
    digits: Digits,
    progress: Callable[[range], Iterable[int]] = iter,
    count: int = HELD_OUT,
) -> Search:
    """Distances of ``count`` held-out images to the database: BIT_XOR and BIT_COUNT on ``device``.

    The words are broadcast against each other, so that neither side is copied out. ``progress``
    wraps the loop over calls.
    """
    database, queries = digits[:-HELD_OUT], digits[-HELD_OUT:][:count]
    distances = np.empty((len(queries.words), len(database.words)), np.uint8)
    for start in progress(range(0, len(queries.words), QUERIES_PER_CALL)):
        rows = slice(start, start + QUERIES_PER_CALL)
        difference = device.bit_xor(queries.words[rows, None], database.words[None, :])
        distances[rows] = device.bit_count(difference, np.uint8)
    return Search(queries, database, distances)
