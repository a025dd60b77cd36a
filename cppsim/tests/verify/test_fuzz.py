"""Compiled code of many random expressions shows the values of Amaranth's simulator.

And so does that of random statements, machines of states and memories, in domains of all kinds;
programs of random testbenches do on many instances what they did on one. `make deep` compares three
million values; ``python -m support.fuzz COUNT`` compares COUNT designs of each kind.
"""

from collections.abc import Callable

import pytest

from cppsim.testing import RandomDesign, random_circuit, random_machine, random_system
from support.fuzz import EXPRESSIONS, FIRST_SEED, STEPS, fuzz, many_expressions
from support.recordings import compare_recording
from support.seeds import seeds

pytestmark = pytest.mark.slow

BATCHES = 1_000_000 // (EXPRESSIONS * STEPS)


@pytest.mark.parametrize("make", [many_expressions, random_system])
@pytest.mark.parametrize("seed", seeds(1, BATCHES))
def test_values(make: Callable[[int], RandomDesign], seed: int) -> None:
    assert fuzz(make, [FIRST_SEED + seed], steps=STEPS) >= 20 * STEPS


@pytest.mark.parametrize("make", [random_circuit, random_machine, random_system])
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_recorded_testbenches(make: Callable[[int], RandomDesign], seed: int) -> None:
    assert compare_recording(make(FIRST_SEED + seed), ["threads"], seed=FIRST_SEED + seed) > 0
