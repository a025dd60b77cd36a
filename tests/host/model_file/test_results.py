"""Timings and comparisons, which all kinds of models share."""

import numpy as np

from bitlane.model_file.results import BusyCycles, Comparison, compare, measure


def test_a_timing_has_the_medians_of_its_iterations() -> None:
    counter = iter([0xFFFF_FFFE, 3, 10, 30, 30, 31])
    calls: list[int] = []
    timing = measure(lambda: calls.append(0), BusyCycles(lambda: next(counter)), iterations=3)
    assert (timing.iterations, timing.cycles, len(calls)) == (3, 5, 3)  # of 5, 20 and 1
    assert str(timing).endswith(" ms median (CPU), 5 cycles")
    assert measure(lambda: None, None).cycles is None
    predicted = measure(lambda: None, BusyCycles(lambda: 7, predicted=True))
    assert str(predicted).endswith(", 0 cycles predicted")


def test_a_comparison_counts_bytes_and_describes_the_first() -> None:
    want = np.arange(6, dtype="<u2").reshape(2, 3)
    assert compare(want, want) == Comparison(12)
    assert str(compare(want, want)) == "12 bytes equal"
    got = want.copy()
    got[0, 1] = 0x0302
    found = compare(got.T, want.T)  # bytes in the order of the elements, not of the memory
    assert (found.size, found.different) == (12, 2)
    expected = "2 of 12 bytes differ, first byte number 4: 0x02, expected 0x01"
    assert str(compare(got.T, want.T, lambda byte: f"number {byte}")) == expected
