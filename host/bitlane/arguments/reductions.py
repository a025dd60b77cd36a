"""Sums along axes, as arguments of calls describe them."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from ..errors import DataTypeError, OutOfRangeError
from .axes import Axes

_UINT32: Final = np.dtype(np.uint32)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A sum along axes: the axes, the type of sums, and whether the axes stay."""

    axis: Axes
    dtype: DTypeLike | None = None
    keepdims: bool = False


def sum_type(dtype: DTypeLike | None, bits: int) -> np.dtype[Any]:
    """Return the type of sums of at most ``bits``; uint32 for None.

    Raises ``DataTypeError`` unless it is an integer, ``OutOfRangeError`` if a sum might not fit.
    """
    chosen = integer_type(_UINT32 if dtype is None else dtype)
    most = np.iinfo(chosen.str).max
    if bits > most:
        raise OutOfRangeError(
            f"dtype: {chosen} holds sums up to {most}; these may be {bits}: expected a wider type"
        )
    return chosen


def integer_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the type of sums, in the native byte order. Raises ``DataTypeError``."""
    try:
        chosen = np.dtype(dtype)
    except TypeError:
        raise DataTypeError(
            f"dtype: {dtype!r}; sums are integers (expected an integer type)"
        ) from None
    if chosen.kind not in "ui":
        raise DataTypeError(f"dtype: {chosen}; sums are integers (expected an integer type)")
    return chosen.newbyteorder("=")
