"""Several devices as one: `Pool`, which splits calls on large arrays over them.

Each device is opened by a process of its own. No bit is computed here.
"""

from .pool import Pool

__all__ = ["Pool"]
