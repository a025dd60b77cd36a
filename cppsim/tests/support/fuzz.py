"""Compares compiled code and Amaranth's simulator on random designs with random inputs.

    python -m support.fuzz COUNT [FIRST_SEED]

compares ``COUNT`` designs of each kind; `make verify` compares the first ones.
"""

import random
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from typing import Any

import cppsim

from .packs import compare_designs
from .random_designs import RandomDesign, random_expressions, random_system
from .random_values import random_number

EXPRESSIONS, STEPS = 200, 200
"""Expressions per design of expressions, and steps per design, in long runs."""

FIRST_SEED = 1000
"""The first seed of long runs."""

_STEP = 0.25e-6


Make = Callable[[int], RandomDesign]
"""A function that makes the random design of a seed."""


def fuzz(make: Make, seeds: Sequence[int], *, steps: int) -> int:
    """Compare designs over ``steps`` random inputs; return the number of compared values.

    The designs of all seeds run side by side. Raises ``AssertionError`` that names the difference
    and the seed whose design also differs alone.
    """
    return compare_designs(make, seeds, partial(_compare, steps=steps))


def _compare(designs: dict[int, RandomDesign], steps: int) -> int:
    (module,) = {design.module for design in designs.values()}
    simulator: Any = cppsim.Simulator(module, mode="check")
    assert not simulator._engine.reason, simulator._engine.reason
    for seed, design in designs.items():
        chance = random.Random(seed)
        for domain, period in design.clocks.items():
            # At the very moment of a reset's release, other domains' view of it is a race.
            phases = (0.3e-7,) if domain.endswith("late") else (1e-7, 2e-7, period / 2)
            simulator.add_clock(period, phase=chance.choice(phases), domain=domain)
        simulator.add_testbench(_testbench(design, chance, steps))
    with redirect_stdout(StringIO()):
        simulator.run()
    return steps * sum(len(design.outputs) for design in designs.values())


def _testbench(
    design: RandomDesign, chance: random.Random, steps: int
) -> Callable[[Any], Coroutine[Any, Any, None]]:
    async def work(context: Any) -> None:
        for _ in range(steps):
            for signal in design.inputs:
                if chance.random() < 0.6:
                    context.set(signal, random_number(chance, signal))
            await context.delay(_STEP)

    return work


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
