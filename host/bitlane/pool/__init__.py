"""Several devices as one: `Pool`, which distributes calls on large arrays over them.

Each device is opened by a separate process. No bit is computed here.
"""

from .pool import Pool

__all__ = ["Pool"]
