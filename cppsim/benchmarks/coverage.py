"""Measure what coverage costs: python cppsim/benchmarks/coverage.py [DESIGN [ARGUMENT ...]].

Cycles a second of processor time without coverage, with statements and branches, and with toggles
as well, in turns in one run; the best of each counts. A testbench lets time pass. DESIGN is a
callable, which is called with the result of each ARGUMENT, also a callable; as of bitlane's system:

    bitlane_sim.system.system:System bitlane_rtl.configurations:full
"""

import sys
import time
from contextlib import nullcontext
from typing import Any

from designs import Make, designs

import cppsim

SECONDS = 0.2
"""Least processor seconds of a measurement."""

ROUNDS = 7

COVERED = {"none": None, "branches": False, "toggles": True}
"""Whether to count toggles, by the name of a column."""


def _simulator(design: Any, toggles: bool | None) -> Any:
    with nullcontext() if toggles is None else cppsim.Coverage(toggles=toggles):
        simulator = cppsim.Simulator(design, mode="always")

    async def testbench(ctx: Any) -> None:
        while True:
            await ctx.tick().repeat(1 << 20)

    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench, background=True)
    return simulator


class _Run:
    """A simulation that goes on for some more cycles at each call."""

    def __init__(self, make: Make, toggles: bool | None) -> None:
        self._simulator = _simulator(make(), toggles)
        self._cycles = 0

    def seconds(self, cycles: int) -> float:
        """Return the processor seconds of ``cycles``."""
        self._cycles += cycles
        before = time.process_time()
        self._simulator.run_until(self._cycles * 1e-6)
        return time.process_time() - before


def main(words: list[str]) -> None:
    """Print the table."""
    print(f"{'design':34}" + "".join(f"{name:>12}{'':8}" for name in COVERED).rstrip())
    for name, make in designs(words).items():
        runs = {column: _Run(make, toggles) for column, toggles in COVERED.items()}
        cycles = 1000
        while runs["none"].seconds(cycles) < SECONDS:
            cycles *= 2
        rates = dict.fromkeys(runs, 0.0)
        for _ in range(ROUNDS):
            for column, run in runs.items():
                rates[column] = max(rates[column], cycles / run.seconds(cycles))
        cells = (f"{rate:12,.0f}{rate / rates['none']:8.2f}" for rate in rates.values())
        print(f"{name[-33:]:34}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
