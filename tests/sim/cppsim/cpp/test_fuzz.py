"""Random designs show in compiled code, at all times, what they show in Amaranth's simulator.

The same by the million: tests/verify/cppsim.
"""

import pytest

from cppsim.cpp import words
from support.sim.fuzz import fuzz
from support.sim.random_designs import random_expressions, random_system


@pytest.mark.parametrize("seed", range(4))
def test_expressions(seed: int) -> None:
    assert fuzz(random_expressions(seed, 100), steps=40, seed=seed) == 4000


@pytest.mark.parametrize("seed", range(6))
def test_statements_states_memories_and_clocks(seed: int) -> None:
    assert fuzz(random_system(seed), steps=40, seed=seed) > 0


def test_what_differs_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_sign_extended", lambda operand, _: f"int64_t({operand})")
    with pytest.raises(AssertionError, match=r"^seed 0: .* is .*, and .* in Amaranth's simulator"):
        fuzz(random_expressions(0, 100), steps=40, seed=0)
