"""Calls on arrays of the host, one at a time: their tiles, and their way to the device and back."""

from .distances import jaccard_index, sum_rows
from .eager import Target, compute
from .transfer import Layout, source_of, store

__all__ = [
    "Layout",
    "Target",
    "compute",
    "jaccard_index",
    "source_of",
    "store",
    "sum_rows",
]
