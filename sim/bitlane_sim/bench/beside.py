"""What batches are measured beside: the single simulator on one core, and Verilator on all."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.synchronize import Barrier
from time import perf_counter

import numpy as np

from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration
from cppsim.errors import SimulationError
from cppsim.model.model import Model

from ..campaigns.commands import move
from ..device.simulator import Simulator
from .batch import BatchRow
from .job import execute
from .record import BenchError
from .verilated import build_verilated, verilator_folder
from .xors import TIMINGS

__all__ = ["measure_beside"]

_SIZE = 1 << 17
"""Bytes of a XOR, of which each process does one after the other."""
_SECONDS = 1.0

_together: Barrier | None = None
"""Of a process: lets all begin at once."""


def measure_beside(
    configuration: Configuration, progress: Callable[[str], None], seconds: float = _SECONDS
) -> Iterator[BatchRow]:
    """Cycles a second of one core, and of as many of Verilator's models as there are cores.

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
            _simulator(configuration, verilator).close()  # built once, and not by each
        except SimulationError as error:
            yield BatchRow(what, None, None, str(error))
            continue
        rates = {
            name: _all(processes, configuration, verilator, stall / 256, seconds)
            for name, stall in TIMINGS.items()
        }
        yield BatchRow(what, processes, rates)


def _simulator(configuration: Configuration, verilator: bool) -> Simulator:
    build = build_verilated if verilator else None
    return Simulator(configuration, partial(Model, build_with=build))


def _all(processes: int, *work: object) -> float:
    """What ``processes`` reach together."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes)
    with context.Pool(processes, _begin, (barrier,)) as pool:
        return sum(pool.starmap(_rate, [work] * processes, chunksize=1))


def _begin(barrier: Barrier) -> None:
    global _together
    _together = barrier


def _rate(configuration: Configuration, verilator: bool, stall: float, seconds: float) -> float:
    """Cycles a second of one process, for about ``seconds``."""
    simulator = _simulator(configuration, verilator)
    memory = simulator.memory
    memory[: 2 * _SIZE] = np.random.default_rng(0).integers(0, 256, 2 * _SIZE, np.uint8)
    if _together:
        _together.wait()
    cycles, started = 0, perf_counter()
    while (passed := perf_counter() - started) < seconds or not cycles:
        execute(simulator, [move(Op.XOR, _SIZE, 0, _SIZE, 2 * _SIZE)], stall=stall)
        cycles += simulator.cycles  # each run begins with a power-on
    wanted = memory[:_SIZE] ^ memory[_SIZE : 2 * _SIZE]
    right = np.array_equal(memory[2 * _SIZE : 3 * _SIZE], wanted)
    simulator.close()
    if not right:
        raise BenchError("--batch: a single simulator wrote wrong bytes")
    return cycles / passed
