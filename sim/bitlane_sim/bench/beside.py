"""The comparisons of a batch: the single simulator on one core, and Verilator on all."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter

from bitlane_rtl.configuration import Configuration
from cppsim.errors import SimulationError
from cppsim.model.model import Model

from ..device.simulator import Simulator
from .batch import BatchRow
from .job import Xor
from .processes import apart
from .record import BenchError
from .verilated import build_verilated, verilator_folder
from .xors import TIMINGS

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
    build = build_verilated if verilator else None
    return Simulator(configuration, partial(Model, build_with=build))


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
            raise BenchError("--batch: a single simulator wrote wrong bytes")
        return cycles / passed
