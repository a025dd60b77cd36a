"""How many random designs a test is given. No tests here."""

import os

__all__ = ["VARIABLE", "seeds"]

VARIABLE = "SEEDS"
"""Environment variable that says how many times as many there are to be: ``SEEDS=10 make test``."""


def seeds(count: int) -> range:
    """``count`` seeds, or as many times that as `VARIABLE` says."""
    return range(count * int(os.environ.get(VARIABLE, "1")))
