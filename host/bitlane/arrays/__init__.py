"""Arrays that stay on the device: `Array`, its values, and their transfers.

Every bit of every result comes from the device. Nothing here computes on data.
"""

from . import bits, filters, functions, joins, shapes  # noqa: F401  # They register functions.
from .array import Array
from .computing import compute, explain
from .creation import asarray, from_dlpack

__all__ = ["Array", "asarray", "compute", "explain", "from_dlpack"]
