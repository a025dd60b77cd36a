"""Parameters of tests by tier: seeds, examples, and cases of the full tier. No tests here.

The tier is the loaded profile of hypothesis, all of which this module registers: ``quick`` for
`make test` and for plain `pytest`, ``full`` for `make check`, ``deep`` for `make deep`.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from .rotation import PART, drawn

QUICK, FULL, DEEP = "quick", "full", "deep"
"""Names of the tiers' profiles."""

settings.register_profile(
    QUICK,
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(FULL, settings.get_profile(QUICK), max_examples=100)
settings.register_profile(
    DEEP, settings.get_profile(QUICK), max_examples=300, derandomize=False, print_blob=True
)
settings.load_profile(QUICK)

FACTOR = "SEEDS"
"""Environment variable that multiplies the number of seeds: ``SEEDS=10 make check``."""

SINGLE = "SEED"
"""Environment variable that names the one seed to run: ``SEED=7 pytest FILE``."""

DEEPER = 3
"""Times as many seeds in the deep tier."""

asked = 0
"""Number of calls that had another result in another tier."""


def seeds(few: int, all: int) -> Sequence[int]:  # noqa: A002 - the word for it at 60 calls
    """Return ``few`` seeds in the quick tier, and `DEEPER` times ``all`` in the deep tier.

    The full tier has the few, and some that the commit draws from the others of ``all``: a sixth of
    ``all`` together. A seed that no run has tried must not decide a merge.

    `FACTOR` multiplies all numbers. Returns the seed that `SINGLE` names instead, if it is set.
    Raises ``ValueError`` if a variable is not a number.
    """
    if SINGLE in os.environ:
        single = _number(SINGLE, 0)
        return range(single, single + 1)
    factor = _number(FACTOR, 1)
    fixed, most = few * factor, all * factor
    count = _by_tier(fixed, max(fixed + (all > few), -(-most // PART)), DEEPER * most)
    if count > most:
        return range(count)
    return [*range(fixed), *drawn(range(fixed, most), count - fixed)]


def examples(times: float) -> settings:
    """Return a decorator for a hypothesis test with ``times`` the profile's number of examples."""
    return settings(max_examples=max(1, round(settings.default.max_examples * times)))


def stride(quick: int) -> int:
    """Return the step through similar cases: ``quick`` in the quick tier, 1 in all others."""
    return _by_tier(quick, 1, 1)


def slow(*values: Any) -> Any:
    """Return a set of parameters that only the full tier takes."""
    return pytest.param(*values, marks=pytest.mark.slow)


def _by_tier(quick: int, full: int, deep: int) -> int:
    global asked
    asked += quick != full
    return {QUICK: quick, DEEP: deep}.get(settings.get_current_profile_name(), full)


def _number(variable: str, least: int) -> int:
    text = os.environ.get(variable, "1")
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{variable}: {text!r}; expected a whole number from {least} on")
    return int(text)
