"""Several devices as one: `Pool`, which distributes calls on large arrays over them.

Each device is opened by a separate process. No bit is computed here.
"""

from .pool import Pool
from .split import chunk_of, split, split_axis

__all__ = [
    "Pool",
    "chunk_of",
    "split",
    "split_axis",
]
