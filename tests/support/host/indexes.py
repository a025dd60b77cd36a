"""Indexes on modelled devices, and NumPy's answer to any search among their rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane import BinaryIndex, Device
from bitlane_rtl.configuration import Search
from support.host.arrays import model, same, uploads

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


METRICS = ["hamming", "jaccard"]

ARRAY = Search(units=3, row_bits=128, queries=8, nearest=4)
"""A search array of rows of 16 bytes."""

WIDE_ARRAY = Search(units=3, row_bits=512, queries=8, nearest=8)
"""A search array of rows of 64 bytes."""


def index_of(rows: Any, ids: Any = None, device: Device | None = None, **options: Any) -> Any:
    """Return an index of ``rows`` on ``device``, or on a model with these options.

    Its type is ``Any``: tests pass it arguments of wrong types.
    """
    metric = options.pop("metric", "hamming")
    device = device or model(**{"memory_bytes": 1 << 16} | options)
    index = BinaryIndex(device, 8 * rows.shape[1], metric=metric)
    if ids is None:
        index.add(rows)
    else:
        index.add_with_ids(rows, ids)
    return index


def answer(
    queries: Any, rows: Any, *, metric: str = "hamming", **options: Any
) -> tuple[NDArray[Any], ...]:
    """Return what NumPy's sorting finds among ``rows``.

    Options: ``k`` and ``radius``, alone or together; ``ids`` of the rows; ``mask``, true for the
    rows that are searched.
    """
    mask, radius = options.get("mask", slice(None)), options.get("radius")
    ids = np.append(np.asarray(options.get("ids", np.arange(len(rows))), np.int64)[mask], -1)
    rows = rows[mask]
    if radius is not None and "k" not in options:
        limits, distances, places = within(queries, rows, radius, metric)
        return limits, distances, ids[places]
    distances, places = nearest(queries, rows, options.get("k", 10), metric)
    if radius is not None:
        places[distances >= radius] = -1
        distances[distances >= radius] = 2**31 - 1 if metric == "hamming" else np.inf
    return distances, ids[places]


def expect_equal(got: tuple[NDArray[Any], ...], expected: tuple[NDArray[Any], ...]) -> None:
    for one, other in zip(got, expected, strict=True):
        assert same(one, other), (one, other)


def expect_found(searched: Any, queries: Any, rows: Any, **options: Any) -> None:
    """Assert that a device, or an index of ``rows``, finds what `answer` says.

    ``select`` selects the rows of ``mask``; the mask does if it is left out.
    """
    given = dict(options)
    if "mask" in given:
        given.setdefault("select", given.pop("mask"))
    options.pop("select", None)
    if isinstance(searched, Device):
        expect_equal(searched.search(queries, rows, **given), answer(queries, rows, **options))
        return
    given.pop("ids", None)
    options["metric"] = searched.metric
    expect_equal(searched.search(queries, **given), answer(queries, rows, **options))


def taken(device: Device) -> int:
    """Return the bytes of the device's memory that are allocated."""
    return sum(piece.size for piece in device.driver.allocator.taken)


def sent(device: Device) -> int:
    """Return the bytes written to the device's memory since the last call."""
    return sum(uploads(device))
