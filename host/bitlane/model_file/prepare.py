"""Creates and checks buffers, operators and command lists of a model. Executes nothing."""

from dataclasses import dataclass

from .. import dml
from ..errors import Fact, ModelFileError, OutOfDeviceMemory
from .model import Binding, Dispatch, Dispatchable, Model
from .parse import dml_error
from .problems import Problems


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """A model with all of its dispatches recorded in command lists."""

    model: Model
    device: dml.Device
    buffers: dict[str, dml.Buffer]
    initialization: dml.CommandList
    dispatches: dict[int, dml.CommandList]
    """By the command's index."""


def prepare(model: Model, device: dml.Device) -> PreparedModel:
    """Create and check everything; nothing is executed, and nothing written to the device.

    Raises ``ModelFileError`` if DirectML or the device refuses the model, or if its resources do
    not fit in the device's memory.
    """
    prepared = PreparedModel(
        model, device, _create_buffers(model, device), device.create_command_list(), {}
    )
    operators, problems = {}, Problems()
    for name, dispatchable in model.dispatchables.items():
        with problems.part():
            operator = _compile(prepared, dispatchable)
            initializer = device.create_operator_initializer([operator])
            bindings = dispatchable.bindings
            _record(prepared, prepared.initialization, initializer, dispatchable, bindings)
            operators[name] = operator
    for index, command in enumerate(model.commands):
        if isinstance(command, Dispatch) and command.dispatchable in operators:
            dispatchable = model.dispatchables[command.dispatchable]
            commands = prepared.dispatches[index] = device.create_command_list(dispatchable.name)
            operator = operators[command.dispatchable]
            with problems.part():
                _record(prepared, commands, operator, dispatchable, command.bindings)
    problems.expect_none()
    return prepared


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


def _compile(prepared: PreparedModel, dispatchable: Dispatchable) -> dml.CompiledOperator:
    device = prepared.device
    try:
        operator = device.create_operator(dispatchable.desc)
        if dispatchable.graph:
            return device.compile_graph(dml.GraphDesc.of(operator), dispatchable.flags)
        return device.compile_operator(operator, dispatchable.flags)
    except dml.DmlError as error:
        file, kind = prepared.model.file, f"{dispatchable.path}.type"
        raise dml_error(error, file, dispatchable.tensor_paths, kind) from error


def _record(
    prepared: PreparedModel,
    commands: dml.CommandList,
    target: dml.CompiledOperator | dml.OperatorInitializer,
    dispatchable: Dispatchable,
    bindings: dict[str, Binding],
) -> None:
    """Record a dispatch of ``target``: the operator of ``dispatchable``, or its initializer."""
    desc = dispatchable.desc
    bound = {
        name: _range(tensor, bindings[name], prepared.buffers)
        for name, tensor in (*desc.inputs, *desc.outputs)
        if name in bindings
    }
    inputs = [bound.get(name) for name, _ in desc.inputs]
    table = prepared.device.create_binding_table(target)
    try:
        if isinstance(target, dml.OperatorInitializer):
            table.bind_inputs([inputs])
        else:
            table.bind_inputs(inputs)
            table.bind_outputs([bound[name] for name, _ in desc.outputs])
        prepared.device.create_command_recorder().record_dispatch(commands, target, table)
    except dml.DmlError as error:
        raise _binding_error(error, prepared.model, dispatchable, bindings) from error
    _check_contents(prepared.model, dispatchable, bindings)


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
    """Return an error of DirectML about ``bindings`` in the words of model files."""
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


def _check_contents(model: Model, dispatchable: Dispatchable, bindings: dict[str, Binding]) -> None:
    """Raise `ModelFileError` unless every input finds its elements in the resource's own values.

    The bytes that round a resource up to a multiple of 4 are not values. A ``.npy`` file that is
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
