"""Compares executors on random designs with random inputs.

    python -m support.fuzz COUNT [FIRST_SEED]

compares ``COUNT`` designs of each kind; `make verify` compares the first ones.
"""

import sys
from collections.abc import Iterable, Sequence
from itertools import chain

from cppsim.testing import RandomDesign, random_expressions, random_system, trace

from .packs import Make, compare_designs

EXPRESSIONS, STEPS = 200, 200
"""Expressions per design of expressions, and steps per design, in long runs."""

FIRST_SEED = 1000
"""The first seed of long runs."""


def fuzz(
    make: Make, seeds: Sequence[int], *, steps: int, executors: Iterable[str] = ("check",)
) -> int:
    """Compare designs over ``steps`` random inputs; return the number of compared values.

    The designs of all seeds run side by side on each of the ``executors``, of which "check" alone
    compares two simulators. Raises ``AssertionError`` that names the difference and the seed whose
    design also differs alone.
    """

    def compare(designs: dict[int, RandomDesign]) -> int:
        shown = {name: trace(designs, name, steps=steps) for name in executors}
        first, *others = shown
        for name in others:
            assert shown[name] == shown[first], f"{name} shows something else than {first}"
        return sum(map(len, chain.from_iterable(shown[first].values())))

    return compare_designs(make, seeds, compare)


def many_expressions(seed: int) -> RandomDesign:
    """Return a design of `EXPRESSIONS` expressions, as in long runs."""
    return random_expressions(seed, EXPRESSIONS)


def _fuzz_many(count: int, first: int = FIRST_SEED) -> None:
    values = 0
    for seed in range(first, first + count):
        values += fuzz(many_expressions, [seed], steps=STEPS)
        values += fuzz(random_system, [seed], steps=STEPS)
        print(f"\r{seed - first + 1} of {count}: {values:,} values", end="", flush=True)
    print()


if __name__ == "__main__":
    _fuzz_many(*map(int, sys.argv[1:]))
