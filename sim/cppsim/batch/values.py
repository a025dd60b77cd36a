"""Numbers and arrays as users give them, checked."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .description import BatchError, PortPlace

__all__ = ["Words", "as_array", "counted", "fitting", "kind_of"]

Words = NDArray[np.uint64]

_MOST = (1 << 63) - 1
_ONES = (1 << 64) - 1


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


def kind_of(port: PortPlace) -> str:
    return f"{port.width} bits{', signed' if port.signed else ''}"


def fitting(port: PortPlace, values: ArrayLike, shape: tuple[int, ...]) -> Words:
    """``values`` as words of 64 bits, of ``shape`` and an axis of words."""
    array = as_array(values, f"port {port.name!r}")
    wide = (port.words,) if port.words > 1 else ()
    for axes in range(len(shape), 0, -1):
        if array.shape == shape[:axes] + wide:
            break
    else:
        wanted = ", ".join(map(str, shape + wide))
        raise BatchError(
            f"port {port.name!r} takes an array of shape ({wanted}), not {array.shape}"
        )
    if not wide:
        array = array[..., None]
        least = -(1 << port.width - 1) if port.signed else 0
        most = (1 << port.width - port.signed) - 1
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        if low < least or high > most:
            value = low if low < least else high
            raise BatchError(f"port {port.name!r}: {value} does not fit {kind_of(port)}")
    spread = array.reshape(array.shape[:axes] + (1,) * (len(shape) - axes) + array.shape[axes:])
    words = np.broadcast_to(spread, (*shape, port.words)).astype(np.uint64)
    top = np.uint64(_ONES >> -port.width % 64)
    if wide and not port.signed and ((array < 0).any() or (words[..., -1] > top).any()):
        raise BatchError(f"port {port.name!r}: words that do not fit {kind_of(port)}")
    words[..., -1] &= top
    return words
