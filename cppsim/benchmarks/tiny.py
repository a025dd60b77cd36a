"""Measure simulations of 3 cycles of new FIFOs: python cppsim/benchmarks/tiny.py [COUNT].

Milliseconds of processor time of each simulation, those of the compiler included, from making the
FIFO to the end of the run. All FIFOs are different. ``COUNT`` FIFOs (default: 40) run in turns in
Amaranth's simulator, compiled at once, interpreted, and interpreted from the cache.
"""

import os
import sys
import tempfile
from typing import Any

from amaranth.lib.fifo import SyncFIFO
from amaranth.sim import Simulator

import cppsim


def simulate(simulator: Any, depth: int) -> None:
    """Simulate 3 cycles of a FIFO of ``depth`` bytes."""
    fifo: Any = SyncFIFO(width=8, depth=depth)

    async def work(ctx: Any) -> None:
        ctx.set(fifo.w_en, 1)
        await ctx.tick().repeat(2)
        await ctx.tick()
        assert ctx.get(fifo.level) == 3

    simulation = simulator(fifo)
    simulation.add_clock(1e-6)
    simulation.add_testbench(work)
    simulation.run()


def seconds(simulator: Any, depth: int, interpret: str = "") -> float:
    """Return the processor seconds of one simulation."""
    os.environ["CPPSIM_INTERPRET"] = interpret
    before = sum(os.times()[:4])
    simulate(simulator, depth)
    return sum(os.times()[:4]) - before


def main(count: int = 40) -> None:
    """Print the mean of each way to simulate."""
    sums = dict.fromkeys(("pysim", "compiled at once", "interpreted", "the same, warm"), 0.0)
    with tempfile.TemporaryDirectory() as compiled, tempfile.TemporaryDirectory() as interpreted:
        for number in range(-1, count):  # the first one compiles what all designs share
            rows = 1000 + number
            os.environ["CPPSIM_CACHE"] = compiled
            times = [seconds(Simulator, rows), seconds(cppsim.Simulator, rows, "0")]
            os.environ["CPPSIM_CACHE"] = interpreted
            times += [seconds(cppsim.Simulator, rows), seconds(cppsim.Simulator, rows)]
            if number >= 0:
                sums = {name: x + y for (name, x), y in zip(sums.items(), times, strict=True)}
    for name, total in sums.items():
        print(f"{name:18}{1000 * total / count:8.1f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
