"""The seeds that a random test runs with. No tests here."""

import os

__all__ = ["FACTOR", "SINGLE", "TIER", "seeds"]

TIER = "BITLANE_TIER"
"""Environment variable that names the tier of tests: ``quick``, the default, or ``full``."""

FACTOR = "SEEDS"
"""Environment variable that multiplies the number of seeds: ``SEEDS=10 make test``."""

SINGLE = "SEED"
"""Environment variable that names the one seed to run: ``SEED=7 pytest FILE`` replays it alone."""


def seeds(few: int, all: int) -> range:  # noqa: A002 - the word for it at 60 calls
    """Return ``few`` seeds in the quick tier and ``all`` in the full one, times `FACTOR`.

    Returns the seed that `SINGLE` names instead, if any. Raises ``ValueError`` for another tier,
    and for numbers that are none.
    """
    counts = {"quick": few, "full": all}
    tier = os.environ.get(TIER, "quick")
    if tier not in counts:
        raise ValueError(f"{TIER}: {tier!r}; expected quick or full")
    if SINGLE in os.environ:
        single = _number(SINGLE, 0)
        return range(single, single + 1)
    return range(counts[tier] * _number(FACTOR, 1))


def _number(variable: str, least: int) -> int:
    text = os.environ.get(variable, "1")
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{variable}: {text!r}; expected a whole number from {least} on")
    return int(text)
