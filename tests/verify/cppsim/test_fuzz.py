"""A million values of random expressions are in compiled code what Amaranth's simulator shows.

And so are random statements, machines of states and memories, in domains of all kinds; programs of
random testbenches do on many instances what they did on one. More designs, as many as are wanted:
``python -m support.sim.fuzz``.
"""

from collections.abc import Callable

import pytest

from support.sim.fuzz import EXPRESSIONS, FIRST_SEED, STEPS, fuzz, many_expressions
from support.sim.random_designs import RandomDesign, random_circuit, random_machine, random_system
from support.sim.recordings import compare_recording

pytestmark = pytest.mark.slow

VALUES = 1_000_000
BATCHES = VALUES // (EXPRESSIONS * STEPS)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + BATCHES))
def test_expressions(seed: int) -> None:
    assert fuzz(many_expressions, [seed], steps=STEPS) * BATCHES == VALUES


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + BATCHES))
def test_statements_states_memories_and_clocks(seed: int) -> None:
    assert fuzz(random_system, [seed], steps=STEPS) > 0


@pytest.mark.parametrize("make", [random_circuit, random_machine, random_system])
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 3))
def test_recorded_testbenches(make: Callable[[int], RandomDesign], seed: int) -> None:
    assert compare_recording(make(seed), ["threads"], seed=seed) > 0
