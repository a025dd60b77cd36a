"""Arrays that stay on the device: `Array`, its values, and their transfers.

Every bit of every result comes from the device. Nothing here computes on data.
"""

from . import functions  # noqa: F401  # It registers NumPy's functions.
from .array import Array, compute, explain
from .creation import arange, asarray, empty, eye, from_dlpack, full, linspace

__all__ = [
    "Array",
    "arange",
    "asarray",
    "compute",
    "empty",
    "explain",
    "eye",
    "from_dlpack",
    "full",
    "linspace",
]
