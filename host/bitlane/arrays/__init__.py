"""Arrays that stay on the device: `Array`, its values, and their transfers.

Every bit of every result comes from the device. Nothing here computes on data.
"""

from . import bits, filters, functions, joins, shapes  # noqa: F401  # They register functions.
from .array import Array
from .computing import compute, explain
from .creation import asarray, from_dlpack
from .strided import Strided
from .value import Claim, DeviceLike, Value, expect_device

__all__ = [
    "Array",
    "Claim",
    "DeviceLike",
    "Strided",
    "Value",
    "asarray",
    "compute",
    "expect_device",
    "explain",
    "from_dlpack",
]
