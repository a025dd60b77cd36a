"""Measure the compiled evaluator beside Verilator: one run, one circuit, the same bytes.

The circuit is the full system (engine, memory and monitor) with random data; Verilator compiles
the Verilog of `bitlane export`. Both must write the same bytes in the same cycles.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full
from cppsim.model.model import Model

from ..device.simulator import Simulator
from .job import Xor, XorRun
from .record import BenchError
from .verilated import build_verilated

_OURS, _THEIRS = "compiled", "Verilator"
_STALLS = {"no stalls": 0.0, "stalls 0.5": 0.5}


def measure(
    progress: Callable[[str], None],
    configuration: Configuration | None = None,
    *,
    size: int = 1 << 21,
    rounds: int = 10,
) -> dict[str, float]:
    """Cycles a second of processor time of both, and how they relate, by name.

    Every round lets both XOR ``size`` random bytes, one after the other; the best round of each
    counts. Raises ``SimulationError`` if a tool is missing, ``BenchError`` if the two differ.
    """
    configuration = configuration or full()
    results: dict[str, float] = {}
    xors: dict[str, Xor] = {}
    try:
        for name, build in ((_THEIRS, build_verilated), (_OURS, None)):
            progress(f"build of {name}")
            evaluator = partial(Model, build_with=build)
            simulator = Simulator(configuration, evaluator)
            xors[name] = Xor(simulator, size)
            assert isinstance(simulator.evaluator, Model)
            results[f"{name}, seconds to build"] = simulator.evaluator.library.seconds
        for label, stall in _STALLS.items():
            best = dict.fromkeys(xors, 0.0)
            for number in range(rounds):
                progress(f"{label}, {number + 1} of {rounds}")
                runs = {name: xor.run(stall) for name, xor in xors.items()}
                best = {name: max(best[name], run.rate) for name, run in runs.items()}
                _expect_same(xors, runs, 4 * size)
            for name, speed in best.items():
                results[f"{name}, {label}, cycles/s"] = speed
            results[f"{_OURS} to {_THEIRS}, {label}"] = best[_OURS] / best[_THEIRS]
    finally:
        for xor in xors.values():
            xor.simulator.close()
    return results


def _expect_same(xors: Mapping[str, Xor], runs: Mapping[str, XorRun], size: int) -> None:
    ours, theirs = runs[_OURS], runs[_THEIRS]
    if ours.cycles != theirs.cycles or ours.traffic != theirs.traffic:
        raise BenchError(
            f"--verilator: {ours.cycles} cycles on {_OURS}, {theirs.cycles} on {_THEIRS}"
        )
    mine, others = (xors[name].simulator.memory[:size] for name in (_OURS, _THEIRS))
    if not np.array_equal(mine, others):
        raise BenchError(f"--verilator: {_OURS} and {_THEIRS} wrote different bytes")
