"""What a test takes in each tier: seeds, examples, and parameters of the full tier. No tests here.

The tier is the hypothesis profile that `tests/conftest.py` loads: ``quick`` for `make test` and for
plain `pytest`, ``full`` for `make check`.
"""

import os
from typing import Any

import pytest
from hypothesis import settings

__all__ = ["FULL", "QUICK", "VARIABLE", "examples", "is_full", "seeds", "slow"]

QUICK, FULL = "quick", "full"
"""Names of the two profiles."""

VARIABLE = "SEEDS"
"""Environment variable that multiplies the number of seeds: ``SEEDS=10 make check``."""


def is_full() -> bool:
    """Return whether the full tier runs."""
    return settings.get_current_profile_name() == FULL


def seeds(few: int, all: int) -> range:  # noqa: A002
    """Return the seeds 0 to ``few`` in the quick tier, 0 to ``all`` in the full tier."""
    return range((all if is_full() else few) * int(os.environ.get(VARIABLE, "1")))


def examples(times: float) -> settings:
    """Return a decorator for a hypothesis test with ``times`` the profile's number of examples."""
    return settings(max_examples=max(1, round(settings.default.max_examples * times)))


def slow(*values: Any) -> Any:
    """Return a set of parameters that only the full tier takes."""
    return pytest.param(*values, marks=pytest.mark.slow)
