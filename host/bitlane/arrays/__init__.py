"""Arrays that stay on the device: `Array`, what it holds, and the ways in and out of it.

    window -> content -> value -> moves -> evaluation -> ... -> array

Every bit of every result comes from the device. Nothing here computes on data.
"""

from .array import Array
from .creation import asarray

__all__ = ["Array", "asarray"]
