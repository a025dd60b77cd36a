"""Measure what another content of a memory costs: python cppsim/benchmarks/contents.py [ROWS].

Processor seconds, those of the compiler included, in one process with an empty cache: a design with
a memory of 32-bit random rows is made, elaborated and prepared for simulation. Exits with status 1
if another content compiles anything.
"""

import os
import random
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from amaranth.hdl import Fragment, Module
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator

import cppsim
from cppsim.compiling import CACHE

ROUNDS = 3
"""Measurements of each figure but the first compilation; the best one counts."""


def design(rows: int, seed: int) -> Module:
    """Return a design with a memory of ``rows`` random rows and a port of each kind."""
    choose, m = random.Random(seed), Module()
    m.submodules.memory = memory = Memory(
        shape=32, depth=rows, init=[choose.getrandbits(32) for _ in range(rows)]
    )
    read, write = memory.read_port(), memory.write_port()
    m.d.sync += read.addr.eq(read.data)
    m.d.comb += [write.addr.eq(read.addr + 1), write.data.eq(read.data), write.en.eq(read.data[0])]
    return m


def seconds(make: Callable[[Module], Any], rows: int, seed: int) -> float:
    """Return the processor seconds of ``make`` with a new design, and of making that."""
    before = sum(os.times()[:4])
    make(design(rows, seed))
    return sum(os.times()[:4]) - before


def main(rows: int) -> int:
    """Print the table. Return the exit status."""
    makers: dict[str, Callable[[Module], Any]] = {
        "Amaranth elaborates": lambda m: Fragment.get(m, None).prepare(),
        "Amaranth's simulator": Simulator,
        "cppsim, other content": cppsim.Simulator,
    }
    cold = seconds(cppsim.Simulator, rows, 0)
    entries = len(CACHE.entries())
    found = dict.fromkeys(makers, float("inf"))
    for seed in range(1, ROUNDS + 1):
        for name, make in makers.items():
            found[name] = min(found[name], seconds(make, rows, seed))
    compiled = len(CACHE.entries()) - entries
    own = found["Amaranth elaborates"]
    for name, taken in {**found, "cppsim, first content": cold}.items():
        print(f"{name:24}{taken:8.2f} s{taken / own:8.2f} x")
    print(f"{rows:,} rows; compiled for other contents: {compiled}")
    return int(compiled > 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CPPSIM_CACHE"] = folder
        sys.exit(main(int(next(iter(sys.argv[1:]), 1 << 18))))
