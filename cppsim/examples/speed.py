"""Measure cycles a second of cppsim and of Amaranth's simulator in one run."""

import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import Component, Out

import cppsim
from cppsim.mode import Mode

SECONDS = 1.0
"""Approximate processor time of each figure, in seconds."""

SIDES = (12, 24)
"""Side lengths of the grids."""

Testbench = Callable[[Any, int], Callable[[Any], Any]]


class Grid(Component):
    """``side`` by ``side`` cells of 32 bits, each of which adds up two of its neighbours."""

    total: Any

    def __init__(self, side: int) -> None:
        self.side = side
        super().__init__({"total": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        side = range(self.side)
        cells = [[Signal(32, name=f"cell_{x}_{y}", init=x ^ y) for y in side] for x in side]
        for x in side:
            for y in side:
                left, up = cells[x - 1][y], cells[x][y - 1]
                m.d.sync += cells[x][y].eq((left + up) ^ (left & cells[x][y]))
        m.d.comb += self.total.eq(cells[0][0] ^ cells[-1][-1])
        return m


def touch(design: Any, cycles: int) -> Callable[[Any], Any]:
    """Set an input and get an output, cycle by cycle."""
    read = design.r_level if hasattr(design, "r_level") else design.total
    written = design.w_en if hasattr(design, "w_en") else None

    async def run(ctx: Any) -> None:
        for cycle in range(cycles):
            if written is not None:
                ctx.set(written, cycle & 1)
            ctx.get(read)
            await ctx.tick()

    return run


def sample(design: Any, cycles: int) -> Callable[[Any], Any]:
    """Take a sample of every cycle."""
    read = design.r_level if hasattr(design, "r_level") else design.total

    async def run(ctx: Any) -> None:
        left = cycles
        async for _ in ctx.tick().sample(read):
            left -= 1
            if not left:
                break

    return run


def repeat(design: Any, cycles: int) -> Callable[[Any], Any]:
    """Let many cycles pass."""

    async def run(ctx: Any) -> None:
        await ctx.tick().repeat(cycles)

    return run


def seconds(simulator: Any, vcd: str) -> float:
    """Processor time of a run."""
    started = time.process_time()
    with simulator.write_vcd(vcd) if vcd else nullcontext():
        simulator.run()
    return time.process_time() - started


def rate(mode: Mode, make: Callable[[], Any], testbench: Testbench, vcd: str = "") -> float:
    """Cycles a second, of a run that takes about `SECONDS`."""
    cycles = 100
    while True:
        design = make()
        simulator = cppsim.Simulator(design, mode=mode)
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench(design, cycles))
        taken = seconds(simulator, vcd)
        if taken > SECONDS / 4:
            return cycles / taken
        cycles *= 8


def main() -> None:
    """Print the table."""
    designs: dict[str, Callable[[], Any]] = {
        "FIFO of 8 bits": partial(SyncFIFOBuffered, width=8, depth=16),
        **{f"grid of {side * side} cells": partial(Grid, side) for side in SIDES},
    }
    works = {"touch": touch, "sample": sample, "repeat": repeat}
    print(f"{'design':20}{'testbench':20}{'pysim':>12}{'cppsim':>14}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        vcd = str(Path(folder) / "waves.vcd")
        for name, make in designs.items():
            for work, testbench in works.items():
                show(name, work, *(rate(x, make, testbench) for x in (Mode.OFF, Mode.ALWAYS)))
            rates = (rate(x, make, repeat, vcd) for x in (Mode.OFF, Mode.ALWAYS))
            show(name, "repeat, with a VCD", *rates)


def show(design: str, work: str, slow: float, fast: float) -> None:
    """Print a line."""
    print(f"{design:20}{work:20}{slow:12,.0f}{fast:14,.0f}{fast / slow:8.1f}", flush=True)


if __name__ == "__main__":
    main()
