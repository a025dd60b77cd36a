"""Executes a model's commands on a device and compares every dispatch with the golden model."""

from collections.abc import Callable
from itertools import groupby

import numpy as np
import numpy.typing as npt

from .. import reference
from ..text import printable
from .images import write_resource
from .model import Binding, Dispatch, Model, Print, WriteFile
from .prepare import PreparedModel
from .results import (
    BusyCycles,
    CheckResult,
    DispatchResult,
    PrintedResource,
    Result,
    WrittenResource,
    compare,
    measure,
)


class Golden:
    """The golden model's copy of a model's resources, before the first dispatch."""

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

    def check(
        self, command: Dispatch, got: npt.NDArray[np.uint8], iterations: int = 1
    ) -> CheckResult:
        """Compare all bytes of a dispatch's output resource, ``got`` from the device.

        Call it once for each dispatch, in their order. ``iterations``: how often the dispatch was
        executed.
        """
        output = self._model.dispatchables[command.dispatchable].desc.outputs[0][0]
        binding = command.bindings[output]
        want = self._after(command)
        for _ in range(1, iterations):
            # A dispatch that reads its own output gives another result every time.
            self._memory[binding.resource], before = want, want
            want = self._after(command)
            if np.array_equal(want, before):
                break
        # Continue with the device's bytes, so that a difference is reported once.
        self._memory[binding.resource] = got

        def describe(byte: int) -> str:
            name = printable(binding.resource)
            return f"{byte} of '{name}' (byte {byte - binding.offset} of {output})"

        return CheckResult(command.dispatchable, compare(got, want, describe))

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
    report: Callable[[Result], object],
    *,
    check: bool = True,
    read_cycles: BusyCycles | None = None,
    iterations: int = 1,
) -> bool:
    """Carry out all commands and ``report`` their results; return whether all checks passed.

    Dispatches with no other command between them are one job of the device: each acts as if all
    before it were complete, but independent ones run at the same time. With several ``iterations``
    each dispatch is a job by itself, which is repeated before the next one begins. With ``check``,
    the output's whole buffer is compared with the golden model's as every dispatch left it, so
    that a job also ends where an output would be written again. ``read_cycles`` reads
    the device's busy cycles.

    Raises ``ModelFileError`` for a file that cannot be written, and the errors of the driver.
    """
    model = prepared.model
    for name, resource in model.resources.items():
        buffer, values = prepared.buffers[name], resource.values
        buffer.write(values.data())
        rest = buffer.size_in_bytes - values.size
        buffer.write(np.broadcast_to(np.uint8(0), rest), values.size)
    prepared.device.execute(prepared.initialization)
    batch = _Batch(prepared, report, Golden(model) if check else None, read_cycles, iterations)
    for index, command in enumerate(model.commands):
        if isinstance(command, Dispatch):
            batch.add(index, command)
            continue
        batch.execute()
        report(
            _print(prepared, command) if isinstance(command, Print) else _write(prepared, command)
        )
    batch.execute()
    return batch.passed


def execute_dispatches(prepared: PreparedModel) -> None:
    """Execute the initialization and all dispatches as `run` does without checks, and no more.

    No resource is sent, printed or written to a file. Raises the errors of the driver.
    """
    prepared.device.execute(prepared.initialization)
    commands = enumerate(prepared.model.commands)
    for is_dispatch, group in groupby(commands, lambda item: isinstance(item[1], Dispatch)):
        if is_dispatch:
            prepared.device.execute(*(prepared.dispatches[index] for index, _ in group))


class _Batch:
    """Collects dispatches that are executed together, as one job of the device."""

    def __init__(
        self,
        prepared: PreparedModel,
        report: Callable[[Result], object],
        golden: Golden | None,
        read_cycles: BusyCycles | None,
        iterations: int,
    ) -> None:
        self.passed = True
        self._prepared = prepared
        self._report = report
        self._golden = golden
        self._read_cycles = read_cycles
        self._iterations = iterations
        self._waiting: dict[int, Dispatch] = {}

    def add(self, index: int, command: Dispatch) -> None:
        """Add the dispatch with the number ``index``; execute those before it if it must wait."""
        written = map(self._output, self._waiting.values())
        again = self._golden is not None and self._output(command) in written
        if again or self._iterations > 1:
            self.execute()
        self._waiting[index] = command

    def execute(self) -> None:
        """Execute all waiting dispatches, and check their outputs."""
        if not self._waiting:
            return
        lists = [self._prepared.dispatches[index] for index in self._waiting]
        device = self._prepared.device
        timing = measure(lambda: device.execute(*lists), self._read_cycles, self._iterations)
        for command in self._waiting.values():
            self._report(DispatchResult(command.dispatchable, timing, len(lists)))
            if self._golden is not None:
                got = self._prepared.buffers[self._output(command)].read().view(np.uint8)
                result = self._golden.check(command, got, self._iterations)
                self._report(result)
                self.passed = self.passed and not result.comparison.different
        self._waiting.clear()

    def _output(self, command: Dispatch) -> str:
        """Return the name of the resource that a dispatch writes."""
        desc = self._prepared.model.dispatchables[command.dispatchable].desc
        return command.bindings[desc.outputs[0][0]].resource


def _print(prepared: PreparedModel, command: Print) -> PrintedResource:
    resource = prepared.model.resources[command.resource]
    size = resource.elements * resource.data_type.itemsize
    values = prepared.buffers[command.resource].read(size, 0, resource.data_type.dtype)
    return PrintedResource(command.resource, resource.data_type.name, values, command.verbose)


def _write(prepared: PreparedModel, command: WriteFile) -> WrittenResource:
    data = prepared.buffers[command.resource].read().view(np.uint8)
    resource = prepared.model.resources[command.resource]
    write_resource(command, resource, data, prepared.model.file)
    return WrittenResource(command.resource, command.target)
