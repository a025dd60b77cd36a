"""Runs a model on a device, and compares every dispatch with the golden model.

Everything is checked before anything is executed: ``prepare`` creates every buffer and operator
and records every dispatch, ``run`` then carries out the commands.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from .. import dml, reference
from ..dml.buffer import PIECE
from ..driver.allocator import OutOfDeviceMemory
from .dispatchables import dml_error
from .errors import Fact, ModelFileError
from .model import Binding, Dispatch, Dispatchable, Model, Print, Values
from .output import write_resource
from .values import print_flat, print_verbose

__all__ = ["PreparedModel", "prepare", "run"]

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """A model whose dispatches all wait to be executed."""

    model: Model
    device: dml.Device
    buffers: dict[str, dml.Buffer]
    initialization: dml.CommandList
    dispatches: dict[int, dml.CommandList]
    """By the command's index."""


def prepare(model: Model, device: dml.Device) -> PreparedModel:
    """Create and check everything; nothing is executed, and nothing written to the device.

    Raises ``ModelFileError`` for what DirectML or the device refuses, and for resources that do
    not fit the device's memory.
    """
    buffers = _create_buffers(model, device)
    recorder = device.create_command_recorder()
    initialization = device.create_command_list()
    operators = {}
    for name, dispatchable in model.dispatchables.items():
        paths, kind = dispatchable.tensor_paths, f"{dispatchable.path}.type"
        try:
            created = device.create_operator(dispatchable.desc)
        except dml.DmlError as error:
            raise dml_error(error, model.file, paths, kind) from error
        operators[name] = device.compile_operator(created, dispatchable.flags)
        initializer = device.create_operator_initializer([operators[name]])
        table = device.create_binding_table(initializer)
        bindings = dispatchable.bindings
        try:
            table.bind_inputs([_bound(dispatchable, bindings, buffers)])
            recorder.record_dispatch(initialization, initializer, table)
        except dml.DmlError as error:
            raise _binding_error(error, model, dispatchable, bindings) from error
        _check_contents(model, dispatchable, bindings)
    dispatches = {}
    for index, command in enumerate(model.commands):
        if not isinstance(command, Dispatch):
            continue
        dispatchable = model.dispatchables[command.dispatchable]
        operator = operators[command.dispatchable]
        commands = dispatches[index] = device.create_command_list()
        table = device.create_binding_table(operator)
        output_name, output = dispatchable.desc.outputs[0]
        try:
            table.bind_inputs(_bound(dispatchable, command.bindings, buffers))
            table.bind_outputs([_range(output, command.bindings[output_name], buffers)])
            recorder.record_dispatch(commands, operator, table)
        except dml.DmlError as error:
            raise _binding_error(error, model, dispatchable, command.bindings) from error
        _check_contents(model, dispatchable, command.bindings)
    return PreparedModel(model, device, buffers, initialization, dispatches)


def run(
    prepared: PreparedModel,
    write_line: Callable[[str], object],
    *,
    check: bool = True,
    read_cycles: Callable[[], int] | None = None,
) -> bool:
    """Carry out the commands, a line of text for each; whether all checks passed.

    With ``check``, the output's whole buffer is compared with the golden model's after every
    dispatch. ``read_cycles`` reads a counter of the device's busy cycles, modulo 2**32.
    """
    model, passed = prepared.model, True
    for name, resource in model.resources.items():
        _fill(prepared.buffers[name], resource.values)
    prepared.device.execute(prepared.initialization)
    golden = _GoldenModel(model) if check else None
    for index, command in enumerate(model.commands):
        if isinstance(command, Dispatch):
            write_line(_dispatch(command, prepared, prepared.dispatches[index], read_cycles))
            if golden is not None:
                output = command.bindings[_output(model, command)].resource
                line, fine = golden.compare(command, _bytes(prepared.buffers[output]))
                write_line(line)
                passed = passed and fine
        elif isinstance(command, Print):
            resource = model.resources[command.resource]
            size = resource.elements * resource.data_type.itemsize
            values = prepared.buffers[command.resource].read(size, 0, resource.data_type.dtype)
            shown = print_verbose(values) if command.verbose else print_flat(values)
            separator = "\n" if command.verbose else " "
            write_line(f"Resource '{command.resource}':{separator}{shown}")
        else:
            data = _bytes(prepared.buffers[command.resource])
            write_resource(command, model.resources[command.resource], data, model.file)
            write_line(f"Resource '{command.resource}' written to '{command.target}'")
    return passed


class _GoldenModel:
    """What every resource ought to hold."""

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

    def compare(self, command: Dispatch, got: Bytes) -> tuple[str, bool]:
        """The check's line, and whether ``got``, the output's buffer, is what it ought to be."""
        desc = self._model.dispatchables[command.dispatchable].desc
        inputs = [
            self._owned[command.dispatchable, name]
            if (command.dispatchable, name) in self._owned
            else self._region(command.bindings[name])
            for name, _ in desc.inputs
        ]
        binding = command.bindings[desc.outputs[0][0]]
        want = reference.evaluate(desc, inputs, self._region(binding))
        # After a difference go on with what the device has, so that it is reported once.
        self._memory[binding.resource] = got
        different = np.flatnonzero(got != want)
        if different.size == 0:
            return f"Check '{command.dispatchable}': {got.size} bytes equal", True
        first = int(different[0])
        line = (
            f"Check '{command.dispatchable}': {different.size} of {got.size} bytes differ, first"
            f" byte {first} of '{binding.resource}' (byte {first - binding.offset} of"
            f" {desc.outputs[0][0]}): 0x{got[first]:02X}, expected 0x{want[first]:02X}"
        )
        return line, False

    def _region(self, binding: Binding) -> reference.Region:
        return reference.Region(self._memory[binding.resource], binding.offset)


def _dispatch(
    command: Dispatch,
    prepared: PreparedModel,
    commands: dml.CommandList,
    read_cycles: Callable[[], int] | None,
) -> str:
    before = read_cycles() if read_cycles else 0
    start = perf_counter()
    prepared.device.execute(commands)
    milliseconds = (perf_counter() - start) * 1000
    line = f"Dispatch '{command.dispatchable}': 1 iterations, {milliseconds:.4f} ms median (CPU)"
    if read_cycles:
        line += f", {(read_cycles() - before) % 2**32} cycles"
    return line


def _fill(buffer: dml.Buffer, values: Values) -> None:
    """Write the initial values, and zeros to the end of the buffer."""
    buffer.write(values.data())
    rest = buffer.size_in_bytes - values.size
    zeros = np.zeros(min(rest, PIECE), np.uint8)
    for start in range(values.size, buffer.size_in_bytes, PIECE):
        buffer.write(zeros[: buffer.size_in_bytes - start], start)


def _output(model: Model, command: Dispatch) -> str:
    return model.dispatchables[command.dispatchable].desc.outputs[0][0]


def _bytes(buffer: dml.Buffer) -> Bytes:
    return buffer.read().view(np.uint8)


def _create_buffers(model: Model, device: dml.Device) -> dict[str, dml.Buffer]:
    buffers = {}
    for name, resource in model.resources.items():
        try:
            buffers[name] = device.create_buffer(resource.size)
        except OutOfDeviceMemory as error:
            raise ModelFileError(
                model.file, f"resources.{name}", Fact(f"{resource.size} bytes"), f"less ({error})"
            ) from error
    return buffers


def _bound(
    dispatchable: Dispatchable, bindings: dict[str, Binding], buffers: dict[str, dml.Buffer]
) -> list[dml.BufferBinding | None]:
    return [
        _range(tensor, bindings[name], buffers) if name in bindings else None
        for name, tensor in dispatchable.desc.inputs
    ]


def _check_contents(model: Model, dispatchable: Dispatchable, bindings: dict[str, Binding]) -> None:
    """Raise `ModelFileError` unless every input finds its elements in the resource's own values.

    The bytes that round a resource up to a multiple of 4 are no values. A ``.npy`` file that is
    bound from its start must hold what the tensor reaches, no more and no less.
    """
    for name, tensor in dispatchable.desc.inputs:
        if name not in bindings:
            continue
        binding = bindings[name]
        resource = model.resources[binding.resource]
        needed = tensor.bytes_reached
        found = resource.content - binding.offset
        if found < needed or (resource.array and not binding.offset and found != needed):
            value = Fact(f"{found} bytes of {binding.resource}")
            raise ModelFileError(model.file, binding.path, value, f"{needed} bytes, as {name} has")


def _range(
    tensor: dml.BufferTensorDesc, binding: Binding, buffers: dict[str, dml.Buffer]
) -> dml.BufferBinding:
    """The bytes of the tensor alone, so that tensors side by side in a resource do not overlap.

    DxDispatch binds all bytes to the end of the resource.
    """
    buffer = buffers[binding.resource]
    rest = max(buffer.size_in_bytes - binding.offset, 0)
    size = min(tensor.total_tensor_size_in_bytes, rest)
    return dml.BufferBinding(buffer, binding.offset, size)


def _binding_error(
    error: dml.DmlError, model: Model, dispatchable: Dispatchable, bindings: dict[str, Binding]
) -> ModelFileError:
    """What DirectML refuses of ``bindings``, in the words of model files."""
    binding = bindings.get(error.tensor)
    places = {
        "Offset": (".elementOffset", f"{error.value} bytes"),
        "SizeInBytes": ("", f"{error.value} bytes of {binding and binding.resource}"),
        "Buffer": ("", str(error.value)),
    }
    if binding is None or error.field not in places:
        return dml_error(error, model.file, dispatchable.tensor_paths, dispatchable.path)
    field, value = places[error.field]
    expected = f"{error.expected} ({error.hresult})"
    return ModelFileError(model.file, binding.path + field, Fact(value), expected)
