"""Distances and searches in arrays of Dask's: each block where it is, what is found put together.

The sizes of chunks must be known: ``compute_chunk_sizes`` finds them out. Nothing is executed here.
"""

# Dask's parameters have the types of their defaults, as far as pyright sees.
# pyright: reportArgumentType=false, reportIndexIssue=false

from itertools import accumulate
from math import prod
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, DTypeLike

from bitlane_rtl.abi import Op

from ..arrays.sums import Axes, chosen_axes, sum_type
from ..default import default_device
from ..jobs.operands import AnyArray, ShapeError
from ..jobs.promotion import as_pair
from ..search import Asked, as_rows
from .blocks import Given, known, on_blocks
from .elements import expect_shapes

__all__ = ["cardinality", "hamming", "jaccard", "search"]


def cardinality(
    a: Given, axis: Axes = -1, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> da.Array:
    """``Device.cardinality``; along ``axis`` all is made one chunk."""
    return _summed("cardinality", [known("a", a)], axis, dtype, keepdims=keepdims)


def hamming(
    a: Given, b: Given, axis: Axes = -1, *, dtype: DTypeLike | None = None, keepdims: bool = False
) -> da.Array:
    """``Device.hamming``; along ``axis`` all is made one chunk."""
    return _summed("hamming", _pair(a, b), axis, dtype, keepdims=keepdims)


def jaccard(a: Given, b: Given, axis: Axes = -1, *, keepdims: bool = False) -> da.Array:
    """``Device.jaccard``, as float64; along ``axis`` all is made one chunk."""
    return _along("jaccard", _pair(a, b), axis, np.dtype(np.float64), keepdims=keepdims)


def _pair(a: Given, b: Given) -> list[da.Array]:
    arrays = [known("a", a), known("b", b)]
    as_pair(Op.XOR, np.empty(0, arrays[0].dtype), np.empty(0, arrays[1].dtype), "safe")
    expect_shapes(*arrays)
    return list(da.broadcast_arrays(*arrays))


def _summed(
    name: str, operands: list[da.Array], axis: Axes, dtype: DTypeLike | None, *, keepdims: bool
) -> da.Array:
    shape, widest = operands[0].shape, max(x.dtype.itemsize for x in operands)
    bits = 8 * widest * prod(shape[each] for each in chosen_axes(axis, len(shape)))
    kind = sum_type(dtype, bits)
    return _along(name, operands, axis, kind, dtype=kind, keepdims=keepdims)


def _along(
    name: str,
    operands: list[da.Array],
    axis: Axes,
    kind: np.dtype[Any],
    **keywords: Any,  # noqa: ANN401, those of the method
) -> da.Array:
    rank = operands[0].ndim
    axes = chosen_axes(axis, rank)
    whole = [x.rechunk(dict.fromkeys(axes, -1)) for x in operands]
    sums = on_blocks(name, whole, kind, axes, axis=axes, **keywords | {"keepdims": True})
    if keywords["keepdims"]:
        return sums
    return sums[tuple(0 if each in axes else slice(None) for each in range(rank))]


def search(
    queries: ArrayLike,
    database: Given,
    k: int | None = None,
    *,
    radius: float | None = None,
    metric: str = "hamming",
) -> tuple[da.Array, ...]:
    """``Device.search`` in each chunk of the rows of ``database``, and what is found joined.

    ``queries`` are sent to every chunk. Raises as ``Device.search`` does.
    """
    asked = Asked(queries, k, radius, metric)
    rows = known("database", database)
    as_rows("database", np.empty((0,) * rows.ndim, rows.dtype))
    if rows.shape[1] != asked.queries.shape[1]:
        raise ShapeError(
            f"queries: shape {asked.queries.shape}; expected (n, {rows.shape[1]}): rows of"
            f" {8 * rows.shape[1]} bits"
        )
    rows = rows.rechunk({1: -1})
    firsts = accumulate(rows.chunks[0], initial=0)
    shared = delayed(asked)
    parts = [
        _found(shared, first, block)
        for first, block in zip(firsts, rows.to_delayed().ravel(), strict=False)
    ]
    joined = _joined(shared, parts)
    return tuple(
        da.from_delayed(joined[number], shape, dtype)
        for number, (shape, dtype) in enumerate(zip(asked.shapes, asked.types, strict=True))
    )


@delayed
def _found(asked: Asked, first: int, rows: AnyArray) -> tuple[int, int, tuple[AnyArray, ...]]:
    """What the device of this process finds in ``rows``, of which ``first`` is the first."""
    return 0, first, default_device().search(asked.queries, rows, **asked.keywords)


@delayed
def _joined(
    asked: Asked, parts: list[tuple[int, int, tuple[AnyArray, ...]]]
) -> tuple[AnyArray, ...]:
    return asked.joined(parts)
