"""Plans of many instances, run in portions: stimulus, expected results, judgement, report.

The number of an instance determines all of it, so that it can be run again alone.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.command_line import CHECK_FAILED, DONE
from bitlane.errors import BitlaneError
from cppsim import Program
from cppsim.errors import SimulationError
from cppsim.stored import Backend, find_cupy

from ..figures import record, write_json
from .arrays import Array, Bytes, Namespace, Numbers, namespace
from .contract import Expected, execute
from .folder import CircuitOptions, HarnessCircuit
from .scoreboard import Observed
from .stimulus import Workload

_PORTIONS = {"cuda": 1 << 15}
"""Instances that run at a time, by backend: GPUs want many."""

_PORTION = 1 << 12

_MODELLED = 1 << 10
"""Instances that the model looks at, at a time."""


class JobFailed(BitlaneError):
    """A job failed without a fault: an error of the circuit. One line names the job."""


@dataclass(slots=True)
class Portion:
    """Instances that run together: numbers, RAM as (instances, bytes) or (bytes,), and programs."""

    numbers: Numbers
    ram: Bytes
    programs: list[Program]
    work: Workload


class Stage:
    """A circuit and a backend, which run portions. Counts simulated cycles and seconds.

    ``model``: ``"numpy"``, ``"cupy"``, or ``"auto"``: CuPy where the backend is ``cuda``.
    ``circuit`` may be without its text where no instance runs on the backend.
    Raises ``SimulationError`` if the backend is missing.
    """

    def __init__(self, circuit: CircuitOptions, backend: str = "auto", model: str = "auto") -> None:
        self.circuit = circuit
        self._backend: Backend | str = backend
        self._model = model
        self.cycles = 0
        self.seconds = 0.0

    @property
    def backend(self) -> Backend:
        """Made once; serves all portions."""
        if isinstance(self._backend, str):
            self._backend = self._written.runner(1, self._backend).compiled
        return self._backend

    def expect_ready(self) -> None:
        """Raise ``SimulationError`` if the backend or the model cannot run here."""
        _ = self.backend
        if not self._on_numpy:
            _cupy()

    @property
    def portion(self) -> int:
        """Instances that run at a time."""
        return _PORTIONS.get(self.backend.name, _PORTION)

    def run(self, ram: Bytes, programs: Sequence[Program], instances: int) -> list[Observed]:
        """Run ``programs`` on ``instances`` from power-on; return results and RAM after each."""
        circuit = self._written
        runner = circuit.runner(instances, self.backend)
        circuit.put_ram(runner, ram)
        observed = []
        for program in programs:
            started = perf_counter()
            results = runner.run(program)
            self.seconds += perf_counter() - started
            observed.append(Observed(results, circuit.ram(runner)))
        self.cycles += int(runner.cycles.sum())
        return observed

    def expected(self, ram: Bytes, work: Workload, most: int) -> Expected:
        """Return the model's results for all instances, as arrays of NumPy."""
        whole = np.broadcast_to(ram, (work.instances, ram.shape[-1]))
        configuration = self.circuit.configuration

        def part(first: int) -> list[NDArray[Any]]:
            some = slice(first, first + _MODELLED)
            memory, records, counts = (
                self._moved(np.ascontiguousarray(x[some]))
                for x in (whole, work.records, work.counts)
            )
            found = execute(memory, records, counts, configuration, most)
            return [_back(getattr(found, x.name)) for x in fields(found)]

        # NumPy lets other threads run while it computes; a GPU is busy with one already.
        with ThreadPoolExecutor(os.cpu_count() if self._on_numpy else 1) as pool:
            parts = list(pool.map(part, range(0, work.instances, _MODELLED)))
        return Expected(*(np.concatenate(x) for x in zip(*parts, strict=True)))

    @property
    def _written(self) -> HarnessCircuit:
        if not isinstance(self.circuit, HarnessCircuit):
            raise TypeError("a circuit without its text runs on no backend; see make_circuit")
        return self.circuit

    @property
    def _on_numpy(self) -> bool:
        """Whether the model computes with NumPy."""
        if self._model == "auto":
            return self.backend.name != "cuda"
        return self._model == "numpy"

    def _moved(self, array: NDArray[Any]) -> Array:
        """``array`` where the model computes."""
        return array if self._on_numpy else _cupy().asarray(array)


def _cupy() -> Namespace:
    return find_cupy("model 'cupy'", "model 'numpy'")


def _back(array: Array) -> NDArray[Any]:
    return np.asarray(array if namespace(array) is np else array.get())


class CampaignPlan(ABC):
    """The work of a campaign: ``instances`` of one circuit, numbered from 0.

    ``replay`` is the command that runs one of them, with a field for its number.
    """

    instances: int
    replay: str

    def numbers(self) -> Numbers:
        """Return the numbers of the instances to run, by default of all."""
        return np.arange(self.instances)

    @abstractmethod
    def portion(self, numbers: Numbers) -> Portion:
        """Return the stimulus of the instances ``numbers``."""

    @abstractmethod
    def judge(self, stage: Stage, portion: Portion, observed: list[Observed]) -> dict[int, str]:
        """Count the results of ``portion``; return the failures by index in it."""

    @abstractmethod
    def rows(self) -> list[dict[str, object]]:
        """Return a table of the instances that ran; every row has the same names."""


@dataclass(slots=True)
class Outcomes:
    """``failures``: the lines that replay them. ``stopped``: why the run ended early, or ""."""

    instances: int = 0
    failures: list[str] = field(default_factory=list)
    stopped: str = ""


def run_plan(
    stage: Stage, plan: CampaignPlan, numbers: Numbers, progress: Callable[[int], None]
) -> Outcomes:
    """Run the instances ``numbers``; call ``progress`` with the number of instances that are done.

    If the backend fails, the outcomes so far are returned.
    """
    outcomes = Outcomes()
    for first in range(0, len(numbers), stage.portion):
        portion = plan.portion(numbers[first : first + stage.portion])
        try:
            observed = stage.run(portion.ram, portion.programs, len(portion.numbers))
        except SimulationError as error:
            outcomes.stopped = str(error)
            break
        outcomes.failures += _lines(plan, portion, plan.judge(stage, portion, observed))
        outcomes.instances += len(portion.numbers)
        progress(outcomes.instances)
    return outcomes


def run_single(stage: Stage, plan: CampaignPlan, number: int, vcd: Path | None = None) -> Outcomes:
    """Run one instance alone, in the single simulator; write waveforms to ``vcd``, if any."""
    # Amaranth, which nobody else needs here.
    from .harness import run_alone

    portion = plan.portion(np.array([number]))
    ram = np.broadcast_to(portion.ram, (1, portion.ram.shape[-1]))[0]
    observed = run_alone(stage.circuit.configuration, ram, portion.programs, 0, vcd)
    return Outcomes(1, _lines(plan, portion, plan.judge(stage, portion, observed)))


def _lines(plan: CampaignPlan, portion: Portion, reasons: dict[int, str]) -> list[str]:
    return [
        f"{plan.replay.format(number=int(portion.numbers[place]))}  # {reasons[place]}"
        for place in sorted(reasons)
    ]


_SHOWN = 20
"""Failures that are printed."""


def report(
    stage: Stage,
    outcomes: Outcomes,
    rows: Sequence[dict[str, object]],
    name: str,
    file: Path | None,
) -> int:
    """Print ``rows`` and failures, write both to ``file``, and return the exit code.

    Raises ``BitlaneError`` after that if the run stopped early.
    """
    if rows:
        print(table(rows))
    rate = stage.cycles / stage.seconds if stage.seconds else 0.0
    failed = len(outcomes.failures)
    print(
        f"{outcomes.instances:,} instances, {stage.cycles:,} cycles, {failed:,} failures;"
        f" {rate:,.0f} cycles/s on {stage.backend.name}"
    )
    for line in outcomes.failures[:_SHOWN]:
        print(line)
    if failed > _SHOWN:
        print(f"... and {failed - _SHOWN:,} more, all of them in the file of --json")
    if file:
        figures = {
            "circuit": stage.circuit.options,
            "backend": stage.backend.name,
            "instances": outcomes.instances,
            "cycles": stage.cycles,
            "seconds": round(stage.seconds, 3),
            "stopped": outcomes.stopped,
            "failures": outcomes.failures,
        }
        write_json(file, record(name, list(rows)) | figures)
    if outcomes.stopped:
        raise BitlaneError(f"{name}: stopped after {outcomes.instances:,}: {outcomes.stopped}")
    return CHECK_FAILED if failed else DONE


def table(rows: Sequence[dict[str, object]]) -> str:
    """Return ``rows`` below a line of their names, with numbers aligned to the right."""
    names = list(rows[0])
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    left = [isinstance(rows[0][name], str) for name in names]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in cells
    )


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
