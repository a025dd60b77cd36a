"""How fast the fast evaluator is beside Verilator: one run, one circuit, the same bytes.

The circuit is the full system, of whose core `bitlane export` writes the Verilog: engine, memory
and monitor, with random data. Both must write the same bytes in the same cycles.
"""

from collections.abc import Callable, Mapping
from functools import partial
from time import process_time

import numpy as np

from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full
from cppsim.model.model import Model

from ..campaigns.commands import move
from ..device.simulator import Simulator
from .job import Traffic, execute
from .record import BenchError
from .verilated import build_verilated

__all__ = ["measure"]

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
    simulators: dict[str, Simulator] = {}
    data = np.random.default_rng(0).integers(0, 256, 2 * size, np.uint8)
    try:
        for name, build in ((_THEIRS, build_verilated), (_OURS, None)):
            progress(f"build of {name}")
            evaluator = partial(Model, build_with=build)
            simulators[name] = simulator = Simulator(configuration, evaluator)
            simulator.memory[: 2 * size] = data
            assert isinstance(simulator.evaluator, Model)
            results[f"{name}, seconds to build"] = simulator.evaluator.library.seconds
        for label, stall in _STALLS.items():
            best = dict.fromkeys(simulators, 0.0)
            for number in range(rounds):
                progress(f"{label}, {number + 1} of {rounds}")
                traffic: dict[str, Traffic] = {}
                for name, simulator in simulators.items():
                    traffic[name], speed = _run(simulator, size, stall)
                    best[name] = max(best[name], speed)
                _expect_same(simulators, traffic, 4 * size)
            for name, speed in best.items():
                results[f"{name}, {label}, cycles/s"] = speed
            results[f"{_OURS} to {_THEIRS}, {label}"] = best[_OURS] / best[_THEIRS]
    finally:
        for simulator in simulators.values():
            simulator.close()
    return results


def _run(simulator: Simulator, size: int, stall: float) -> tuple[Traffic, float]:
    """What a XOR of ``size`` bytes cost, and cycles a second of processor time."""
    simulator.memory[2 * size : 3 * size] = 0
    started = process_time()
    traffic = execute(simulator, [move(Op.XOR, size, 0, size, 2 * size)], stall=stall)
    return traffic, simulator.cycles / (process_time() - started)


def _expect_same(
    simulators: Mapping[str, Simulator], traffic: Mapping[str, Traffic], size: int
) -> None:
    ours, theirs = simulators[_OURS], simulators[_THEIRS]
    if ours.cycles != theirs.cycles or traffic[_OURS] != traffic[_THEIRS]:
        raise BenchError(
            f"--verilator: {ours.cycles} cycles on {_OURS}, {theirs.cycles} on {_THEIRS}"
        )
    if not np.array_equal(ours.memory[:size], theirs.memory[:size]):
        raise BenchError(f"--verilator: {_OURS} and {_THEIRS} wrote different bytes")
