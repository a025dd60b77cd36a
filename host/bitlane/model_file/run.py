"""Executes a model's commands on a device and compares every dispatch with the golden model."""

from collections.abc import Callable, Sequence
from itertools import groupby
from statistics import median, median_low
from time import perf_counter
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .. import reference
from ..dml import CommandList
from .images import write_resource
from .model import Binding, Dispatch, Model, Print, WriteFile
from .prepare import PreparedModel
from .resources import plain, print_flat, print_verbose


class Line(str):
    """A line, or several. ``data`` says the same for programs; ``kind`` what it belongs to."""

    __slots__ = ("data", "kind")

    kind: str
    """"dispatches", "checks", "resources" or "files"."""
    data: dict[str, Any]

    def __new__(cls, text: str, kind: str, data: dict[str, Any]) -> Self:
        line = super().__new__(cls, text)
        line.kind = kind
        line.data = data
        return line


class Golden:
    """The golden model's copy of a model's resources, as they are before the first dispatch."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._memory = {}
        for name, resource in model.resources.items():
            self._memory[name] = np.zeros(resource.size, np.uint8)
            self._memory[name][: resource.values.size] = resource.data
        self._owned = {
            (dispatchable.name, tensor): reference.Region(
                self._memory[binding.resource].copy(), binding.offset
            )
            for dispatchable in model.dispatchables.values()
            for tensor, binding in dispatchable.bindings.items()
        }

    def compare(self, command: Dispatch, got: npt.NDArray[np.uint8], iterations: int = 1) -> Line:
        """The line of a check of ``got``, all of the output's resource; ``different``: wrong bytes.

        Dispatches are to be compared in their order, each once; ``iterations``: how often it was
        executed.
        """
        desc = self._model.dispatchables[command.dispatchable].desc
        binding = command.bindings[desc.outputs[0][0]]
        want = self._after(command)
        for _ in range(1, iterations):
            # What reads where it writes gives something else every time.
            self._memory[binding.resource], before = want, want
            want = self._after(command)
            if np.array_equal(want, before):
                break
        # After a difference go on with what the device has, so that it is reported once.
        self._memory[binding.resource] = got
        different = np.flatnonzero(got != want)
        name = command.dispatchable
        data = {"name": name, "bytes": got.size, "different": different.size}
        if different.size == 0:
            return Line(f"Check '{name}': {got.size} bytes equal", "checks", data)
        first = int(different[0])
        text = (
            f"Check '{name}': {different.size} of {got.size} bytes differ, first"
            f" byte {first} of '{binding.resource}' (byte {first - binding.offset} of"
            f" {desc.outputs[0][0]}): 0x{got[first]:02X}, expected 0x{want[first]:02X}"
        )
        return Line(text, "checks", data)

    def _after(self, command: Dispatch) -> npt.NDArray[np.uint8]:
        """All of the output's resource after one more execution."""
        desc = self._model.dispatchables[command.dispatchable].desc
        inputs = [
            self._owned[command.dispatchable, name]
            if (command.dispatchable, name) in self._owned
            else self._region(command.bindings[name])
            for name, _ in desc.inputs
        ]
        output = self._region(command.bindings[desc.outputs[0][0]])
        return reference.evaluate(desc, inputs, output)

    def _region(self, binding: Binding) -> reference.Region:
        return reference.Region(self._memory[binding.resource], binding.offset)


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


def execute_dispatches(prepared: PreparedModel) -> None:
    """Execute the initialization and all dispatches as `run` does without checks, and no more.

    No resource is sent, printed or written to a file. Raises what the driver raises.
    """
    prepared.device.execute(prepared.initialization)
    commands = enumerate(prepared.model.commands)
    for is_dispatch, group in groupby(commands, lambda item: isinstance(item[1], Dispatch)):
        if is_dispatch:
            prepared.device.execute(*(prepared.dispatches[index] for index, _ in group))


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
