"""Random designs show in compiled code, at all times, what they show in Amaranth's simulator.

The same by the million: cppsim/tests/verify.
"""

from collections.abc import Callable, Sequence

import pytest

import cppsim
from cppsim.cpp import words
from support.fuzz import fuzz
from support.packs import compare_designs, in_packs
from support.random_designs import (
    RandomDesign,
    random_expressions,
    random_machine,
    random_system,
    trace_all,
)
from support.seeds import seeds, stride

EXPRESSIONS = 100 // stride(2)


def expressions(seed: int) -> RandomDesign:
    return random_expressions(seed, EXPRESSIONS)


@pytest.mark.parametrize("pack", in_packs(seeds(1, 4)), ids=str)
def test_expressions(pack: Sequence[int]) -> None:
    assert fuzz(expressions, pack, steps=40) == 40 * EXPRESSIONS * len(pack)


@pytest.mark.parametrize("pack", in_packs(seeds(1, 6)), ids=str)
def test_statements_states_memories_and_clocks(pack: Sequence[int]) -> None:
    assert fuzz(random_system, pack, steps=40) > 0


def test_what_differs_is_reported_with_its_seed(change: Callable[..., None]) -> None:
    change(words, "_sign_extended", lambda operand, _: f"int64_t({operand})")
    with pytest.raises(AssertionError, match=r"^seed 1: .* is .*, and .* in Amaranth's simulator"):
        fuzz(random_expressions, range(2), steps=40)


def compared(make: Callable[[int], RandomDesign], pack: Sequence[int], steps: int) -> int:
    """Compare the traces of the designs of a pack; return of how many designs."""

    def compare(designs: dict[int, RandomDesign]) -> int:
        slow, fast = (
            trace_all(designs, engine, steps=steps) for engine in ("pysim", cppsim.Engine)
        )
        assert fast == slow
        return len(slow)

    return compare_designs(make, pack, compare)


@pytest.mark.parametrize("pack", in_packs(seeds(3, 25)), ids=str)
def test_combinational_logic(pack: Sequence[int]) -> None:
    assert compared(random_expressions, pack, 25) == len(pack)


@pytest.mark.parametrize("pack", in_packs(seeds(2, 15)), ids=str)
def test_machines_of_several_clocks(pack: Sequence[int]) -> None:
    assert compared(random_machine, pack, 60) == len(pack)
