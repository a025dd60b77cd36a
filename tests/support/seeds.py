"""Parameters of tests by tier: seeds, examples, and cases of the full tier. No tests here.

The tier is the hypothesis profile that `tests/conftest.py` loads: ``quick`` for `make test` and for
plain `pytest`, ``full`` for `make check`.
"""

import os
from typing import Any

import pytest
from hypothesis import settings

QUICK, FULL = "quick", "full"
"""Names of the tiers' profiles."""

FACTOR = "SEEDS"
"""Environment variable that multiplies the number of seeds: ``SEEDS=10 make check``."""

SINGLE = "REPLAY"
"""Environment variable that names the one seed to run: ``REPLAY=7 pytest FILE``."""


asked = 0
"""Number of calls that had another result in another tier."""


def seeds(few: int, all: int) -> range:  # noqa: A002 - the word for it at 60 calls
    """Return ``few`` seeds in the quick tier and ``all`` in any other, times `FACTOR`.

    Returns the seed that `SINGLE` names instead, if it is set. Raises ``ValueError`` if a variable
    is not a number.
    """
    if SINGLE in os.environ:
        single = _number(SINGLE, 0)
        return range(single, single + 1)
    count = _by_tier(few, all)
    return range(count * _number(FACTOR, 1))


def examples(times: float) -> settings:
    """Return a decorator for a hypothesis test with ``times`` the profile's number of examples."""
    return settings(max_examples=max(1, round(settings.default.max_examples * times)))


def stride(quick: int) -> int:
    """Return the step through similar cases: ``quick`` in the quick tier, 1 in all others."""
    return _by_tier(quick, 1)


def slow(*values: Any) -> Any:
    """Return a set of parameters that only the full tier takes."""
    return pytest.param(*values, marks=pytest.mark.slow)


def _by_tier(quick: int, full: int) -> int:
    global asked
    asked += quick != full
    return quick if settings.get_current_profile_name() == QUICK else full


def _number(variable: str, least: int) -> int:
    text = os.environ.get(variable, "1")
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{variable}: {text!r}; expected a whole number from {least} on")
    return int(text)
