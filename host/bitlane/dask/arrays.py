"""bitlane's functions on the blocks of Dask's arrays: elements, distances, searches."""


# Dask's parameters have the types of their defaults, as far as pyright sees.
# pyright: reportArgumentType=false

from collections.abc import Callable, Collection, Sequence
from functools import partial

# Dask's parameters have the types of their defaults, as far as pyright sees.
# pyright: reportArgumentType=false, reportIndexIssue=false
from itertools import accumulate
from math import prod
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, DTypeLike

from bitlane_rtl.abi import Op

from .._typing import AnyArray
from ..arrays import Array
from ..arrays.elementwise import Axes, chosen_axes, sum_type
from ..default import default_device
from ..device import Device
from ..errors import OtherDeviceError, ShapeError
from ..search import Asked, as_rows
from ..streaming.operands import as_array, count_type, result_shape
from ..streaming.promotion import Casting, as_pair

Given: TypeAlias = Any
"""An array of Dask's, or what NumPy makes one of."""


def as_dask(name: str, x: Given) -> da.Array:
    """``x`` as an array of Dask's. Raises ``DataTypeError`` or ``OtherDeviceError``."""
    if isinstance(x, Array):
        raise OtherDeviceError(
            f"{name}: an array on a device; expected one of Dask's or NumPy's ({name}.get() gives"
            " it)"
        )
    if not isinstance(x, da.Array):
        return da.asarray(as_array(name, x))
    as_array(name, np.empty(0, x.dtype))
    return x


def known(name: str, x: Given) -> da.Array:
    """`as_dask` of ``x``. Raises ``ShapeError`` if sizes of its chunks are unknown."""
    array = as_dask(name, x)
    if np.isnan(array.shape).any():
        raise ShapeError(f"{name}: shape {array.shape}; expected known sizes of chunks")
    return array


def on_device(name: str, keywords: dict[str, Any], *operands: AnyArray) -> AnyArray:
    """What the device of this process makes of ``operands``; opened if need be."""
    return np.asarray(getattr(default_device(), name)(*operands, **keywords))


def on_blocks(
    name: str,
    operands: Sequence[da.Array],
    kind: np.dtype[Any],
    single: Collection[int] = (),
    **keywords: Any,  # noqa: ANN401, those of the method
) -> da.Array:
    """An array of ``kind`` whose blocks are what the method ``name`` makes of those of operands.

    ``single``: axes of which each block of the result has one element. Blocks broadcast as arrays
    do, and those that do not meet are cut until they do.
    """
    rank = max(x.ndim for x in operands)
    placed: list[object] = []
    for x in operands:
        placed += [x, tuple(range(rank - x.ndim, rank))]
    return da.blockwise(
        partial(on_device, name, keywords),
        tuple(range(rank)),
        *placed,
        token=f"bitlane-{name}",
        dtype=kind,
        adjust_chunks={axis: lambda size: 1 for axis in single},
        # Without it Dask would try the method on nothing, here.
        meta=np.empty((0,) * rank, kind),
    )


def _one(op: Op) -> Callable[[Given], da.Array]:
    def call(a: Given) -> da.Array:
        array = as_dask("a", a)
        return on_blocks(call.__name__, (array,), array.dtype.newbyteorder("="))

    return _documented(call, op)


def _two(op: Op) -> Callable[..., da.Array]:
    def call(a: Given, b: Given, *, casting: Casting = "safe") -> da.Array:
        # Types meet, and numbers take them, without a look at elements.
        first, second, dtype = as_pair(op, _typed("a", a), _typed("b", b), casting)
        operands = [
            as_dask(name, array if type(x) is int else x)
            for name, x, array in (("a", a, first), ("b", b, second))
        ]
        expect_shapes(*operands)
        return on_blocks(call.__name__, operands, dtype.newbyteorder("="))

    return _documented(call, op)


def bit_count(a: Given, dtype: DTypeLike | None = None) -> da.Array:
    """``Device.bit_count`` of every block."""
    chosen = count_type(dtype, None)
    return on_blocks("bit_count", (as_dask("a", a),), chosen, dtype=chosen)


def _typed(name: str, x: Given) -> Given:
    """Something of the type of ``x``, and a number itself."""
    return x if type(x) is int else np.empty(0, as_dask(name, x).dtype)


def expect_shapes(a: da.Array, b: da.Array) -> None:
    """Raises ``ShapeError`` if they do not broadcast; what is unknown is known when it is done."""
    shapes = [tuple(1 if np.isnan(n) else int(n) for n in x.shape) for x in (a, b)]
    result_shape(*(np.broadcast_to(np.uint8(0), shape) for shape in shapes))


def _documented(call: Callable[..., da.Array], op: Op) -> Callable[..., da.Array]:
    name = f"bit_{op.name.lower()}"
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``Device.{name}`` of every block.\n\n{getattr(Device, name).__doc__}"
    return call


bit_not = _one(Op.NOT)
bit_copy = _one(Op.COPY)
bit_and = _two(Op.AND)
bit_or = _two(Op.OR)
bit_xor = _two(Op.XOR)
bit_nand = _two(Op.NAND)
bit_nor = _two(Op.NOR)
bit_xnor = _two(Op.XNOR)
bit_shift_left = _two(Op.SHIFT_LEFT)
bit_shift_right = _two(Op.SHIFT_RIGHT)


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
