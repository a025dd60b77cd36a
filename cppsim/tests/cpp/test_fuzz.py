"""Random designs show on all executors, at all times, what they show in Amaranth's simulator.

The same by the million: cppsim/tests/verify.
"""

from collections.abc import Callable, Sequence

import pytest

from cppsim.cpp import words
from cppsim.testing import (
    EXECUTORS,
    RandomDesign,
    random_circuit,
    random_expressions,
    random_machine,
    random_system,
)
from support.fuzz import fuzz
from support.packs import in_packs
from support.seeds import seeds, slow, stride
from support.written_once import write_once

EXPRESSIONS = 100 // stride(2)


def expressions(seed: int) -> RandomDesign:
    return random_expressions(seed, EXPRESSIONS)


ROWS = [(expressions, 1, 20), (random_machine, 2, 15), (random_system, 1, 6)]
PACKS = [(make, pack) for make, few, every in ROWS for pack in in_packs(seeds(few, every))]


@pytest.mark.parametrize(("make", "pack"), [*PACKS, slow(random_circuit, [0, 1])])
def test_random_designs(
    make: Callable[[int], RandomDesign], pack: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_once(monkeypatch.setattr)
    assert fuzz(make, pack, steps=40, executors=EXECUTORS) >= 40 * 10 * len(pack)


def test_what_differs_is_reported_with_its_seed(change: Callable[..., None]) -> None:
    change(words, "_sign_extended", lambda operand, _: f"int64_t({operand})")
    with pytest.raises(AssertionError, match=r"^seed 1: .* is .*, and .* in Amaranth's simulator"):
        fuzz(random_expressions, range(2), steps=40)
