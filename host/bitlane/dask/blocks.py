"""A method of ``Device`` on each block of arrays, where that is. Nothing is executed here."""

# Dask's parameters have the types of their defaults, as far as pyright sees.
# pyright: reportArgumentType=false

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, TypeAlias

import dask.array as da
import numpy as np

from ..arrays import Array
from ..default import default_device
from ..errors import OtherDeviceError
from ..jobs.operands import AnyArray, ShapeError, as_array

__all__ = ["Given", "as_dask", "known", "on_blocks", "on_device"]

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
