"""Carries out a model's commands on a device, and compares every dispatch with the golden model."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from .golden import Golden
from .model import Dispatch, Print, WriteFile
from .output import write_resource
from .prepare import PreparedModel
from .values import print_flat, print_verbose

__all__ = ["run"]


def run(
    prepared: PreparedModel,
    write_line: Callable[[str], object],
    *,
    check: bool = True,
    read_cycles: Callable[[], int] | None = None,
) -> bool:
    """Carry out the commands, a line of text for each; whether all checks passed.

    Dispatches with nothing else between them are one job of the device: each acts as if all before
    it were complete, but those that need nothing of each other run at the same time. With
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
    jobs = _Jobs(prepared, write_line, golden, read_cycles)
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
        write_line: Callable[[str], object],
        golden: Golden | None,
        read_cycles: Callable[[], int] | None,
    ) -> None:
        self.passed = True
        self._prepared = prepared
        self._write_line = write_line
        self._golden = golden
        self._read_cycles = read_cycles
        self._waiting: dict[int, Dispatch] = {}

    def add(self, index: int, command: Dispatch) -> None:
        """Let a dispatch, the command of number ``index``, be a part of the job if possible."""
        written = map(self._output, self._waiting.values())
        if self._golden is not None and self._output(command) in written:
            self.finish()
        self._waiting[index] = command

    def finish(self) -> None:
        """Execute the dispatches that wait, and compare what they wrote."""
        if not self._waiting:
            return
        lists = [self._prepared.dispatches[index] for index in self._waiting]
        before = self._read_cycles() if self._read_cycles else 0
        start = perf_counter()
        self._prepared.device.execute(*lists)
        figures = f"{(perf_counter() - start) * 1000:.4f} ms median (CPU)"
        if self._read_cycles:
            figures += f", {(self._read_cycles() - before) % 2**32} cycles"
        if len(lists) > 1:
            figures += f" for a job of {len(lists)} dispatches"
        for command in self._waiting.values():
            self._write_line(f"Dispatch '{command.dispatchable}': 1 iterations, {figures}")
            if self._golden is not None:
                got = self._prepared.buffers[self._output(command)].read().view(np.uint8)
                line, fine = self._golden.compare(command, got)
                self._write_line(line)
                self.passed = self.passed and fine
        self._waiting.clear()

    def _output(self, command: Dispatch) -> str:
        """The name of the resource that a dispatch writes."""
        desc = self._prepared.model.dispatchables[command.dispatchable].desc
        return command.bindings[desc.outputs[0][0]].resource


def _print(prepared: PreparedModel, command: Print) -> str:
    resource = prepared.model.resources[command.resource]
    size = resource.elements * resource.data_type.itemsize
    values = prepared.buffers[command.resource].read(size, 0, resource.data_type.dtype)
    shown = f"\n{print_verbose(values)}" if command.verbose else f" {print_flat(values)}"
    return f"Resource '{command.resource}':{shown}"


def _write(prepared: PreparedModel, command: WriteFile) -> str:
    data = prepared.buffers[command.resource].read().view(np.uint8)
    resource = prepared.model.resources[command.resource]
    write_resource(command, resource, data, prepared.model.file)
    return f"Resource '{command.resource}' written to '{command.target}'"
