"""Arrays of many instances: their types, counts, and random numbers.

A random number follows from a seed and the number of an instance, whatever runs beside it. Arrays
that a function takes may be NumPy's or CuPy's; so are its results.
"""

from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

Array: TypeAlias = Any
"""An array of NumPy's or of CuPy's."""

Namespace: TypeAlias = Any
"""NumPy or CuPy."""

_STEP = 0x9E37_79B9_7F4A_7C15
_ONES = (1 << 64) - 1


def draw(seed: int, numbers: Array, what: str, below: int) -> Array:
    """Return a random number below ``below`` for each of ``numbers``; each ``what`` has its own."""
    return ((_mixed(_keys(seed, numbers, what)) >> np.uint64(33)) % np.uint64(below)).astype("i8")


def noise(seed: int, numbers: Array, size: int) -> Array:
    """Return a row of ``size`` random bytes, a multiple of 8, for each of ``numbers``."""
    xp = namespace(numbers)
    places = (xp.arange(size // 8, dtype=np.uint64) + np.uint64(1)) * np.uint64(_STEP)
    return _mixed(_keys(seed, numbers, "noise")[:, None] + places).view(np.uint8)


def namespace(array: Array) -> Namespace:
    """Return the package of ``array``: NumPy or CuPy."""
    return np if isinstance(array, np.ndarray) else import_module("cupy")


def tally(numbers: Array, below: int) -> Array:
    """Count the occurrences in ``numbers`` of each number below ``below``."""
    xp = namespace(numbers)
    # CuPy has no bincount of nothing.
    return xp.bincount(numbers, minlength=below) if len(numbers) else xp.zeros(below, np.int64)


def _keys(seed: int, numbers: Array, what: str) -> Array:
    salt = int.from_bytes(what.encode()[:8].ljust(8, b"\0"), "little") * _STEP + seed & _ONES
    key = int(_mixed(np.array([salt], np.uint64))[0])
    return _mixed(numbers.astype(np.uint64) ^ np.uint64(key))


def _mixed(values: Array) -> Array:
    """The finaliser of SplitMix64: every bit of the result depends on every one of ``values``."""
    values = values + np.uint64(_STEP)
    for shift, factor in ((30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
