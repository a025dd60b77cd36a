"""Carries out a model's commands on a device, and compares every dispatch with the golden model."""

from collections.abc import Callable, Sequence
from statistics import median, median_low
from time import perf_counter

import numpy as np

from ..dml import CommandList
from .golden import Golden
from .line import Line
from .model import Dispatch, Print, WriteFile
from .output import write_resource
from .prepare import PreparedModel
from .values import plain, print_flat, print_verbose

__all__ = ["run"]


def run(
    prepared: PreparedModel,
    write_line: Callable[[Line], object],
    *,
    check: bool = True,
    read_cycles: Callable[[], int] | None = None,
    iterations: int = 1,
) -> bool:
    """Carry out the commands, a line of text for each; whether all checks passed.

    Dispatches with nothing else between them are one job of the device: each acts as if all before
    it were complete, but those that need nothing of each other run at the same time. With more
    ``iterations`` than one each is a job by itself, executed so many times before the next. With
    ``check``, the output's whole buffer is compared with the golden model's as every dispatch left
    it, so that a job also ends where an output would be written again. ``read_cycles`` reads a
    counter of the device's busy cycles, modulo 2**32.

    Raises ``ModelFileError`` for a file that cannot be written, and what the driver raises.
    """
    model = prepared.model
    for name, resource in model.resources.items():
        buffer, values = prepared.buffers[name], resource.values
        buffer.write(values.data())
        rest = buffer.size_in_bytes - values.size
        buffer.write(np.broadcast_to(np.uint8(0), rest), values.size)
    prepared.device.execute(prepared.initialization)
    golden = Golden(model) if check else None
    jobs = _Jobs(prepared, write_line, golden, _Clock(prepared, read_cycles, iterations))
    for index, command in enumerate(model.commands):
        if isinstance(command, Dispatch):
            jobs.add(index, command)
            continue
        jobs.finish()
        write_line(
            _print(prepared, command) if isinstance(command, Print) else _write(prepared, command)
        )
    jobs.finish()
    return jobs.passed


class _Jobs:
    """Dispatches that wait to be executed together."""

    def __init__(
        self,
        prepared: PreparedModel,
        write_line: Callable[[Line], object],
        golden: Golden | None,
        clock: "_Clock",
    ) -> None:
        self.passed = True
        self._prepared = prepared
        self._write_line = write_line
        self._golden = golden
        self._clock = clock
        self._waiting: dict[int, Dispatch] = {}

    def add(self, index: int, command: Dispatch) -> None:
        """Let a dispatch, the command of number ``index``, be a part of the job if possible."""
        written = map(self._output, self._waiting.values())
        again = self._golden is not None and self._output(command) in written
        if again or self._clock.iterations > 1:
            self.finish()
        self._waiting[index] = command

    def finish(self) -> None:
        """Execute the dispatches that wait, and compare what they wrote."""
        if not self._waiting:
            return
        lists = [self._prepared.dispatches[index] for index in self._waiting]
        figures = self._clock.execute(lists)
        for command in self._waiting.values():
            name = command.dispatchable
            self._write_line(
                Line(f"Dispatch '{name}': {figures}", "dispatches", {"name": name, **figures.data})
            )
            if self._golden is not None:
                got = self._prepared.buffers[self._output(command)].read().view(np.uint8)
                line = self._golden.compare(command, got, self._clock.iterations)
                self._write_line(line)
                self.passed = self.passed and line.data["different"] == 0
        self._waiting.clear()

    def _output(self, command: Dispatch) -> str:
        """The name of the resource that a dispatch writes."""
        desc = self._prepared.model.dispatchables[command.dispatchable].desc
        return command.bindings[desc.outputs[0][0]].resource


class _Clock:
    """Executes jobs a number of times, and says how long they took."""

    def __init__(
        self, prepared: PreparedModel, read_cycles: Callable[[], int] | None, iterations: int
    ) -> None:
        self.iterations = iterations
        self._execute = prepared.device.execute
        self._read_cycles = read_cycles

    def execute(self, lists: Sequence[CommandList]) -> Line:
        """The medians of a job's iterations."""
        times, counts = [], []
        for _ in range(self.iterations):
            before = self._read_cycles() if self._read_cycles else 0
            start = perf_counter()
            self._execute(*lists)
            times.append((perf_counter() - start) * 1000)
            if self._read_cycles:
                counts.append((self._read_cycles() - before) % 2**32)
        time = median(times)
        data: dict[str, object] = {"iterations": self.iterations, "milliseconds": time}
        text = f"{self.iterations} iterations, {time:.4f} ms median (CPU)"
        if counts:
            data["cycles"] = median_low(counts)
            text += f", {data['cycles']} cycles"
        if len(lists) > 1:
            data["dispatches_in_job"] = len(lists)
            text += f" for a job of {len(lists)} dispatches"
        return Line(text, "dispatches", data)


def _print(prepared: PreparedModel, command: Print) -> Line:
    resource = prepared.model.resources[command.resource]
    size = resource.elements * resource.data_type.itemsize
    values = prepared.buffers[command.resource].read(size, 0, resource.data_type.dtype)
    shown = f"\n{print_verbose(values)}" if command.verbose else f" {print_flat(values)}"
    data = {"name": command.resource, "type": resource.data_type.name, "values": plain(values)}
    return Line(f"Resource '{command.resource}':{shown}", "resources", data)


def _write(prepared: PreparedModel, command: WriteFile) -> Line:
    data = prepared.buffers[command.resource].read().view(np.uint8)
    resource = prepared.model.resources[command.resource]
    write_resource(command, resource, data, prepared.model.file)
    return Line(
        f"Resource '{command.resource}' written to '{command.target}'",
        "files",
        {"name": command.resource, "path": str(command.target)},
    )
