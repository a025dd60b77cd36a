"""Numbers and arrays as users give them, checked."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .description import BatchError

__all__ = ["as_array", "counted"]

_MOST = (1 << 63) - 1


def counted(number: object, what: str, least: int, most: int = _MOST) -> int:
    """``number`` of ``what``. Raises ``BatchError`` if it is none from ``least`` to ``most``."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise BatchError(f"{what}: {number!r} is no whole number from {least} on")
    if number > most:
        raise BatchError(f"{what}: {number} is more than {most}")
    return int(number)


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """``values`` of ``what``. Raises ``BatchError`` if they are no array of integers."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise BatchError(f"{what} takes an array, not rows of different lengths") from error
    if array.dtype.kind not in "iub":
        raise BatchError(f"{what} takes integers, not {array.dtype}")
    return array
