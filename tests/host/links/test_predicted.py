"""Durations for people."""

import pytest

from bitlane.links.predicted import duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 us"),
        (1.234e-6, "1.23 us"),
        (0.0123, "12.3 ms"),
        (59.9, "59.9 s"),
        (60, "1 min"),
        (1470, "24.5 min"),
        (3600, "1 h"),
        (5_000_000, "1,389 h"),
        # Rounded to the next unit's first number, but never with an exponent.
        (999.7e-6, "1,000 us"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
