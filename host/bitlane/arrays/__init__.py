"""Arrays that stay on the device: `Array`, what it holds, and the ways in and out of it.

Every bit of every result comes from the device. Nothing here computes on data.
"""

from .array import Array
from .creation import arange, asarray, empty, eye, from_dlpack, full, linspace
from .explanation import explain

__all__ = [
    "Array",
    "arange",
    "asarray",
    "empty",
    "explain",
    "eye",
    "from_dlpack",
    "full",
    "linspace",
]
