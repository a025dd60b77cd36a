"""Measure runs in which somebody waits for changes: python cppsim/benchmarks/waits.py [CYCLES].

Processor seconds of Amaranth's simulator and of cppsim on a design of eight FIFOs, one after the
other in one process. A testbench or a process waits for a signal that never changes, changes every
eight cycles, or in each, and sets an input at each wake-up. Exits with status 1 if a ratio is above
its limit.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.fifo import SyncFIFO
from amaranth.sim import Simulator

import cppsim

Wait = Callable[[Any, Signal], Any]
WAITS: dict[str, Wait] = {
    "changed": lambda ctx, signal: ctx.changed(signal),
    "posedge": lambda ctx, signal: ctx.posedge(signal),
    "negedge": lambda ctx, signal: ctx.negedge(signal),
    "edge": lambda ctx, signal: ctx.edge(signal, 1),
    "changed, sampled": lambda ctx, signal: ctx.changed(signal).sample(signal),
}
NOTHING, ACTING = 0.05, 0.4
"""Limits of the ratios: where nothing wakes up, and where each wake-up sets an input."""
ROUNDS = 3
"""Measurements of each figure; the best one counts."""
FIFOS = 8


class Design:
    """FIFOs that a counter fills and empties, and signals to wait for."""

    def __init__(self) -> None:
        self.module = m = Module()
        self.count, self.answer = Signal(8), Signal(8)
        self.never, self.seldom, self.often = Signal(), Signal(), Signal()
        m.d.sync += self.count.eq(self.count + 1)
        m.d.sync += self.never.eq(self.never & self.count[0])
        m.d.sync += [self.seldom.eq(self.count[3]), self.often.eq(~self.often)]
        for number in range(FIFOS):
            fifo = SyncFIFO(width=8, depth=16)
            m.submodules[f"fifo{number}"] = fifo
            m.d.comb += [
                fifo.w_data.eq(self.count + self.answer),
                fifo.w_en.eq(self.count[number % 3]),
                fifo.r_en.eq(self.count[(number + 1) % 3]),
            ]


def seconds(
    make: Callable[[Module], Any], wait: Wait, awaited: str, kind: str, cycles: int
) -> float:
    """Return the processor seconds of ``cycles`` while a testbench or a process waits."""
    design = Design()

    async def watch(ctx: Any) -> None:
        signal, answer = getattr(design, awaited), 0
        while True:
            await wait(ctx, signal)
            answer = (answer + 1) % 256
            ctx.set(design.answer, answer)

    async def work(ctx: Any) -> None:
        await ctx.tick().repeat(cycles)

    simulator = make(design.module)
    simulator.add_clock(1e-6)
    if kind == "process":
        simulator.add_process(watch)
    else:
        simulator.add_testbench(watch, background=True)
    simulator.add_testbench(work)
    before = time.process_time()
    simulator.run()
    return time.process_time() - before


def main(cycles: int) -> int:
    """Print the table. Return the exit status."""
    seconds(cppsim.Simulator, WAITS["changed"], "never", "process", 10)  # compiles
    print(f"{'waits for':18}{'by':11}{'wakes up, cycles':18}{'pysim':>9}{'cppsim':>9}{'ratio':>8}")
    worst = 0
    for awaited, text, limit in (
        ("never", "never", NOTHING),
        ("seldom", "every 8 or 16", ACTING),
        ("often", "every 1 or 2", ACTING),
    ):
        for name, wait in WAITS.items():
            for kind in ("testbench", "process"):
                found = [
                    min(seconds(make, wait, awaited, kind, cycles) for _ in range(ROUNDS))
                    for make in (Simulator, cppsim.Simulator)
                ]
                ratio = found[1] / found[0]
                worst |= ratio > limit
                print(
                    f"{name:18}{kind:11}{text:18}{found[0]:7.3f} s{found[1]:7.3f} s{ratio:8.3f}",
                    flush=True,
                )
    return worst


if __name__ == "__main__":
    sys.exit(main(int(next(iter(sys.argv[1:]), 2000))))
