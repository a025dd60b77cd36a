"""Expected results of searches, from NumPy's sorting of all distances."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def all_distances(queries: Bytes, rows: Bytes, metric: str = "hamming") -> NDArray[Any]:
    """Return the distances, of shape (queries, rows)."""
    a, b = queries[:, None], rows[None]
    if metric == "hamming":
        return np.bitwise_count(a ^ b).sum(axis=-1, dtype=np.int32)
    shared = np.bitwise_count(a & b).sum(axis=-1, dtype=np.int64)
    either = np.bitwise_count(a | b).sum(axis=-1, dtype=np.int64)
    return 1 - np.where(either == 0, 0.0, shared / np.maximum(either, 1))


def nearest(
    queries: Bytes, rows: Bytes, k: int, metric: str = "hamming"
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the ``k`` nearest rows, by distance, then index; padded where there are fewer."""
    distances = all_distances(queries, rows, metric)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k].astype(np.int64)
    found = np.take_along_axis(distances, order, axis=1)
    missing = ((0, 0), (0, max(0, k - len(rows))))
    farthest = 2**31 - 1 if metric == "hamming" else np.inf
    return (
        np.pad(found, missing, constant_values=farthest),
        np.pad(order, missing, constant_values=-1),
    )


def within(
    queries: Bytes, rows: Bytes, radius: float, metric: str = "hamming"
) -> tuple[NDArray[np.uint64], NDArray[Any], NDArray[np.int64]]:
    """Return all rows nearer than ``radius``: limits, distances, indices."""
    distances = all_distances(queries, rows, metric)
    query, index = np.nonzero(distances < radius)
    limits = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(queries)))])
    return limits.astype(np.uint64), distances[query, index], index.astype(np.int64)
