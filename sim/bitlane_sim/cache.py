"""What bitlane builds once and keeps: in ``BITLANE_CACHE``, else in ``~/.cache/bitlane``."""

from cppsim.compiling.cache import Cache

__all__ = ["CACHE"]

CACHE = Cache("bitlane")
