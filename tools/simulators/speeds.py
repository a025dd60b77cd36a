"""Measure the simulators in seconds on this machine; only ratios compare between machines.

All execute the same XORs on the full system. Verilator compiles the Verilog of `bitlane export`.
"""

import multiprocessing
import os
import resource
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time
from typing import TypeVar

import numpy as np

from bitlane import Device
from bitlane.driver import Driver
from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full
from bitlane_sim.bench import BenchError
from bitlane_sim.bench.job import Traffic, execute
from bitlane_sim.commands import move
from bitlane_sim.device import Simulator, SimulatorLink, open_link
from cppsim import Model
from cppsim.circuits import build
from cppsim.errors import SimulationError
from simulators.batch import TIMINGS, BatchRow, apart
from simulators.verilated import build_verilated, verilator_folder

_XOR_BYTES = 1 << 24

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class XorRun:
    """The cost of one XOR: traffic, cycles from power-on, and seconds."""

    traffic: Traffic
    cycles: int
    seconds: float

    @property
    def rate(self) -> float:
        """Cycles a second."""
        return self.cycles / self.seconds


class Xor:
    """A XOR of ``size`` random bytes on a simulator, for measuring its speed."""

    def __init__(self, simulator: Simulator, size: int) -> None:
        self.simulator = simulator
        self._size = size
        simulator.memory[: 2 * size] = np.random.default_rng(0).integers(0, 256, 2 * size, np.uint8)

    def run(self, stall: float = 0.0, clock: Callable[[], float] = process_time) -> XorRun:
        """Execute it from power-on; ``clock`` returns seconds, by default of processor time."""
        size = self._size
        self.simulator.memory[2 * size : 3 * size] = 0
        started = clock()
        traffic = execute(self.simulator, [move(Op.XOR, size, 0, size, 2 * size)], stall=stall)
        return XorRun(traffic, self.simulator.cycles, clock() - started)

    @property
    def right(self) -> bool:
        """Whether the last run wrote the right bytes."""
        a, b, y = (self.simulator.memory[k * self._size :][: self._size] for k in range(3))
        return np.array_equal(a ^ b, y)


def measure_simulators(progress: Callable[[str], None]) -> dict[str, float]:
    """Seconds, cycles a second of processor time and bytes, by name. Needs a C++ compiler.

    The full system: 64 bits, two read ports, all operators, its memory and its monitor.
    """
    results: dict[str, float] = {}
    progress("first build of the model")
    with tempfile.TemporaryDirectory() as folder:
        results["first build, seconds"] = _in_new_process(_build, folder)
    progress("compiled")
    results["compiled, cycles/s"] = _speed("compiled", 1 << 23, 3)
    progress("pysim")
    results["pysim, cycles/s"] = _speed("pysim", 1 << 13, 1)
    results["compiled to pysim"] = results["compiled, cycles/s"] / results["pysim, cycles/s"]
    progress("16 MiB XOR through the driver")
    seconds, peak = _in_new_process(_xor)
    results["16 MiB XOR, seconds"] = seconds
    results["16 MiB XOR, peak memory to tensors"] = peak
    return results


def _in_new_process(function: Callable[..., _Result], *arguments: object) -> _Result:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _build(folder: str) -> float:
    os.environ["BITLANE_CACHE"] = folder
    started = perf_counter()
    open_link("sim:compiled").close()
    return perf_counter() - started


def _speed(evaluator: str, size: int, repeat: int) -> float:
    """Cycles a second while a XOR of ``size`` random bytes runs; the best of ``repeat``."""
    with closing(Simulator(full(), evaluator)) as simulator:
        xor = Xor(simulator, size)
        return max(xor.run().rate for _ in range(repeat))


def _xor() -> tuple[float, float]:
    """Seconds, and the growth of the process's peak memory in units of the three tensors."""
    link = open_link("sim:compiled")
    assert isinstance(link, SimulatorLink)
    with Device(Driver(link)) as device:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        a = np.arange(_XOR_BYTES // 8, dtype=np.uint64)
        b = a[::-1].copy()
        started = perf_counter()
        device.bit_xor(a, b)
        seconds = perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return seconds, peak * 1024 / (3 * _XOR_BYTES)


_OURS, _THEIRS = "compiled", "Verilator"
_STALLS = {"no stalls": 0.0, "stalls 0.5": 0.5}


def measure_verilator(
    progress: Callable[[str], None],
    configuration: Configuration | None = None,
    *,
    size: int = 1 << 21,
    rounds: int = 10,
) -> dict[str, float]:
    """Cycles a second of processor time of compiled and Verilator, and how they relate, by name.

    Every round lets both XOR ``size`` random bytes, one after the other; the best round of each
    counts. Raises ``SimulationError`` if a tool is missing, ``BenchError`` if the two differ.
    """
    configuration = configuration or full()
    results: dict[str, float] = {}
    xors: dict[str, Xor] = {}
    try:
        for name, build_with in ((_THEIRS, build_verilated), (_OURS, build)):
            progress(f"build of {name}")
            evaluator = partial(Model, build_with=build_with)
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
            f"verilator: {ours.cycles} cycles on {_OURS}, {theirs.cycles} on {_THEIRS}"
        )
    mine, others = (xors[name].simulator.memory[:size] for name in (_OURS, _THEIRS))
    if not np.array_equal(mine, others):
        raise BenchError(f"verilator: {_OURS} and {_THEIRS} wrote different bytes")


_SIZE = 1 << 17
"""Bytes of a XOR. A process executes one after the other."""

_SECONDS = 1.0


def measure_beside(
    configuration: Configuration, progress: Callable[[str], None], seconds: float = _SECONDS
) -> Iterator[BatchRow]:
    """Yield cycles a second of one core, and of one Verilator model for each core.

    Without Verilator its row says so. Raises ``BenchError`` if either wrote wrong bytes.
    """
    cores = os.cpu_count() or 1
    for what, verilator, processes in (
        ("single simulator, 1 core", False, 1),
        (f"Verilator, {cores} core{'s' if cores > 1 else ''}", True, cores),
    ):
        progress(what)
        try:
            if verilator:
                verilator_folder()
            _simulator(configuration, verilator).close()  # fills the cache for all processes
        except SimulationError as error:
            yield BatchRow(what, None, None, str(error))
            continue
        with apart(processes, _Single, configuration, verilator, seconds) as simulators:
            rates = {name: simulators.rate(name) for name in TIMINGS}
        yield BatchRow(what, processes, rates)


def _simulator(configuration: Configuration, verilator: bool) -> Simulator:
    build_with = build_verilated if verilator else build
    return Simulator(configuration, partial(Model, build_with=build_with))


class _Single:
    """One simulator, measured for about ``seconds``."""

    def __init__(self, configuration: Configuration, verilator: bool, seconds: float) -> None:
        self._xor = Xor(_simulator(configuration, verilator), _SIZE)
        self._seconds = seconds

    def rate(self, timing: str, ready: Callable[[], object]) -> float:
        ready()
        cycles, passed = 0, 0.0
        while passed < self._seconds or not cycles:
            run = self._xor.run(TIMINGS[timing] / 256, perf_counter)
            cycles += run.cycles
            passed += run.seconds
        if not self._xor.right:
            raise BenchError("batch: a single simulator wrote wrong bytes")
        return cycles / passed
