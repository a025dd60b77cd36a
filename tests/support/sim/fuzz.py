"""Random designs with random inputs in compiled code and in Amaranth's simulator, side by side.

    python -m support.sim.fuzz COUNT [FIRST_SEED]

compares ``COUNT`` designs of each kind, of which `make verify` compares the first.
"""

import random
import sys
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import cppsim

from .random_designs import RandomDesign, random_expressions, random_system
from .random_values import random_number

__all__ = ["EXPRESSIONS", "FIRST_SEED", "STEPS", "fuzz"]

EXPRESSIONS, STEPS = 200, 200
"""Of each design of expressions, and of each design: what long runs compare."""

FIRST_SEED = 1000
"""Of the long runs."""

_STEP = 0.25e-6


def fuzz(design: RandomDesign, *, steps: int, seed: int) -> int:
    """Let random inputs pass ``steps`` times; how many values of outputs have been compared.

    Raises ``AssertionError`` that names the seed, and the difference.
    """
    chance = random.Random(seed)
    simulator: Any = cppsim.Simulator(design.module, mode="check")
    assert not simulator._engine.reason, f"seed {seed}: {simulator._engine.reason}"
    for domain, period in design.clocks.items():
        # What others see of a reset at the very moment at which it is released is a race.
        phases = (0.3e-7,) if domain == "late" else (1e-7, 2e-7, period / 2)
        simulator.add_clock(period, phase=chance.choice(phases), domain=domain)

    async def work(context: Any) -> None:
        for _ in range(steps):
            for signal in design.inputs:
                if chance.random() < 0.6:
                    context.set(signal, random_number(chance, signal))
            await context.delay(_STEP)

    simulator.add_testbench(work)
    try:
        with redirect_stdout(StringIO()):
            simulator.run()
    except cppsim.Difference as difference:
        raise AssertionError(f"seed {seed}: {difference}") from None
    return steps * len(design.outputs)


def _fuzz_many(count: int, first: int = FIRST_SEED) -> None:
    values = 0
    for seed in range(first, first + count):
        values += fuzz(random_expressions(seed, EXPRESSIONS), steps=STEPS, seed=seed)
        values += fuzz(random_system(seed), steps=STEPS, seed=seed)
        print(f"\r{seed - first + 1} of {count}: {values:,} values", end="", flush=True)
    print()


if __name__ == "__main__":
    _fuzz_many(*map(int, sys.argv[1:]))
