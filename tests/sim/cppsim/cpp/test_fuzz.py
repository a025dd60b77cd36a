"""Random designs show in compiled code, at all times, what they show in Amaranth's simulator.

The same by the million: tests/verify/cppsim.
"""

from collections.abc import Sequence

import pytest

from cppsim.cpp import words
from support.seeds import seeds, stride
from support.sim.fuzz import fuzz
from support.sim.packs import in_packs
from support.sim.random_designs import RandomDesign, random_expressions, random_system

EXPRESSIONS = 100 // stride(2)


def expressions(seed: int) -> RandomDesign:
    return random_expressions(seed, EXPRESSIONS)


@pytest.mark.parametrize("pack", in_packs(seeds(1, 4)), ids=str)
def test_expressions(pack: Sequence[int]) -> None:
    assert fuzz(expressions, pack, steps=40) == 40 * EXPRESSIONS * len(pack)


@pytest.mark.parametrize("pack", in_packs(seeds(1, 6)), ids=str)
def test_statements_states_memories_and_clocks(pack: Sequence[int]) -> None:
    assert fuzz(random_system, pack, steps=40) > 0


def test_what_differs_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_sign_extended", lambda operand, _: f"int64_t({operand})")
    with pytest.raises(AssertionError, match=r"^seed 1: .* is .*, and .* in Amaranth's simulator"):
        fuzz(random_expressions, range(2), steps=40)
