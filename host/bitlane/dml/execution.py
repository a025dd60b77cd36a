"""Recording and execution of dispatches, and an operator on arrays in one call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import DmlError, DmlTypeError
from ..lowering import CommandGroup, Streams, View, insert_fences_labelled, lower_group
from .binding import (
    Bindings,
    BindingTable,
    BufferBinding,
    CompiledOperator,
    Dispatchable,
    OperatorInitializer,
    check_count,
)
from .buffer import PIECE, Buffer, Parent
from .compiled import COPYING, Scratch, scratch_of
from .refusals import as_data, expect_type, removed
from .tensor import BufferTensorDesc
from .types import ExecutionFlags


@dataclass(frozen=True, slots=True)
class Initialization:
    """A dispatch of an initializer of ``operators``, and the bindings of the inputs of each."""

    operators: tuple[CompiledOperator, ...]
    inputs: tuple[Bindings, ...]


@dataclass(frozen=True, slots=True)
class Execution:
    """A dispatch of ``operator``, and the bindings of its tensors."""

    operator: CompiledOperator
    inputs: Bindings
    outputs: Bindings


Step: TypeAlias = Initialization | Execution


@dataclass(frozen=True, slots=True)
class _Volatile:
    """A dispatch of ``operator`` with the bindings of ``table`` when the list is executed."""

    operator: CompiledOperator
    table: BindingTable

    def resolve(self) -> Step:
        """Return the dispatch with the bindings of now. Raises ``DmlError``."""
        if self.table.dispatchable is not self.operator:
            raise removed(
                str(self.operator.desc.operator_type),
                "BindingTable",
                "reset to another dispatchable since the dispatch was recorded",
                "the table of the operator until its volatile bindings have been executed",
            )
        return _resolve(self.table)


class CommandList:
    """Dispatches in the order in which they were recorded; may be executed more than once.

    Holds the buffers that they are bound to.
    """

    def __init__(self, device: Parent, label: str = "") -> None:
        self.device = device
        self.label = label
        self._recorded: list[Step | _Volatile] = []

    def __repr__(self) -> str:
        return f"<bitlane.dml.CommandList: dispatches: {len(self)}>"

    def __len__(self) -> int:
        return len(self._recorded)

    def reset(self) -> None:
        """Remove all dispatches."""
        self._recorded.clear()

    def append(self, step: Step | _Volatile) -> None:
        """Add a dispatch."""
        self._recorded.append(step)

    def steps(self) -> Iterator[Step]:
        """Yield the dispatches with their bindings, which are checked. Raises ``DmlError``."""
        for step in self._recorded:
            yield step.resolve() if isinstance(step, _Volatile) else step


class CommandRecorder:
    """``IDMLCommandRecorder``; ``Device.create_command_recorder`` makes it."""

    def __init__(self, device: Parent) -> None:
        self.device = device

    def __repr__(self) -> str:
        return f"<bitlane.dml.CommandRecorder of {self.device}>"

    def record_dispatch(
        self, command_list: CommandList, dispatchable: Dispatchable, table: BindingTable
    ) -> None:
        """Add a dispatch to ``command_list``; nothing is executed.

        The table's bindings are taken as they are now, unless the operator was compiled with
        ``DESCRIPTORS_VOLATILE``: then they are read when the list is executed. Raises
        ``DmlError`` if a tensor is unbound, or if the output overlaps an input in a way that the
        operator does not allow.
        """
        expect_type("RecordDispatch", "CommandList", command_list, CommandList)
        expect_type("RecordDispatch", "BindingTable", table, BindingTable)
        if table.dispatchable is not dispatchable:
            expected = "a table created for, or reset to, the dispatchable"
            raise removed("RecordDispatch", "BindingTable", "of another dispatchable", expected)
        for name, thing in (("CommandList", command_list), ("BindingTable", table)):
            if thing.device is not self.device:
                raise removed("RecordDispatch", name, "of another device", "this device's")
        if (
            isinstance(dispatchable, CompiledOperator)
            and dispatchable.flags & ExecutionFlags.DESCRIPTORS_VOLATILE
        ):
            command_list.append(_Volatile(dispatchable, table))
        else:
            command_list.append(_resolve(table))


def _resolve(table: BindingTable) -> Step:
    target = table.dispatchable
    if isinstance(target, OperatorInitializer):
        return Initialization(target.operators, table.resolve_initializer(target))
    return Execution(target, *table.resolve_operator(target))


_Pending: TypeAlias = list[tuple[str, list[CommandGroup]]]
"""The command groups of each step with its label, until they are executed together."""


def execute_steps(device: Parent, steps: Sequence[tuple[str, Step]]) -> None:
    """Execute ``steps``, each with its label.

    Raises ``DmlError`` before the first one, and as `Driver.run` does.
    """
    with device.driver.lock:  # no other thread initialises an operator between check and run
        _check_order([step for _, step in steps])
        pending: _Pending = []
        copies: dict[CompiledOperator, dict[str, Buffer]] = {}
        scratches: dict[CompiledOperator, Scratch] = {}
        for label, step in steps:
            if isinstance(step, Execution):
                owned = copies.get(step.operator, step.operator.owned)
                scratch = scratches.get(step.operator) or step.operator.scratch
                assert scratch is not None
                pending.append((label, _groups(device, step, owned, scratch)))
                continue
            for operator, bindings in zip(step.operators, step.inputs, strict=True):
                copies[operator], groups = _copy_owned(device, operator, bindings, pending)
                pending.append((label, groups))
                scratches[operator] = scratch_of(device, operator.desc)
        device.driver.run_labelled(insert_fences_labelled(pending))
        # Not before: an operator whose initialisation failed can be initialised again.
        for operator, owned in copies.items():
            operator.owned = owned
            operator.scratch = scratches[operator]
            operator.initialized = True


def _check_order(steps: Sequence[Step]) -> None:
    """Every operator is initialised exactly once, before its first execution; buffers live.

    Source: ``nf-directml-idmldevice-createoperatorinitializer``.
    """
    done: set[CompiledOperator] = set()
    for step in steps:
        if isinstance(step, Initialization):
            for operator in step.operators:
                if operator.initialized or operator in done:
                    expected = "a compiled operator that is initialized exactly once"
                    raise _wrong_state(operator, "initialized already", expected)
                done.add(operator)
            buffers = [each.buffer for group in step.inputs for each in group if each]
        else:
            operator = step.operator
            if not operator.initialized and operator not in done:
                expected = "a compiled operator that an initializer has initialized"
                raise _wrong_state(operator, "not initialized", expected)
            buffers = [each.buffer for each in (*step.inputs, *step.outputs) if each]
            buffers += operator.owned.values()
            if operator.scratch and operator.scratch.buffer:
                buffers.append(operator.scratch.buffer)
        if any(buffer.closed for buffer in buffers):
            raise removed("RecordDispatch", "Buffer", "closed", "buffers that exist")


def _wrong_state(operator: CompiledOperator, state: str, expected: str) -> Exception:
    return removed(str(operator.desc.operator_type), "State", state, expected)


def _copy_owned(
    device: Parent, operator: CompiledOperator, bindings: Bindings, pending: _Pending
) -> tuple[dict[str, Buffer], list[CommandGroup]]:
    """Return buffers for the inputs that DML owns, and the command groups that fill them.

    Afterwards the bound buffers belong to the caller alone again. A circuit without any of
    ``COPYING`` cannot copy: then all that is ``pending`` is executed, and the host copies.
    """
    driver = device.driver
    op = next((op for op in COPYING if op in driver.geometry.ops), None)
    owned, groups = {}, []
    for (name, tensor), binding in zip(operator.desc.inputs, bindings, strict=True):
        if binding is None:
            continue
        size = tensor.total_tensor_size_in_bytes
        owned[name] = copy = device.create_buffer(size)
        if op is None:
            driver.run_labelled(insert_fences_labelled(pending))
            pending.clear()
            for start in range(0, size, PIECE):
                count = min(PIECE, size - start)
                copy.write(binding.buffer.read(count, binding.offset + start), start)
            continue
        source, target = (View(x, (1,), 1) for x in (_address(binding), copy.address))
        streams = Streams(source, source if op.reads_b else None, target)
        has = driver.geometry
        groups.append(lower_group(op, (size,), streams, has.abilities, has.memory))
    return owned, groups


def _groups(
    device: Parent, step: Execution, owned: dict[str, Buffer], scratch: Scratch
) -> list[CommandGroup]:
    inputs = [
        BufferBinding(owned[name]) if name in owned else binding
        for (name, _), binding in zip(step.operator.desc.inputs, step.inputs, strict=True)
    ]
    starts = [_address(binding) for binding in (*step.outputs, *inputs)]
    starts.append(scratch.buffer.address if scratch.buffer else 0)
    has = device.driver.geometry
    return scratch.memory.groups(starts, has.abilities, has.memory)


def _address(binding: BufferBinding | None) -> int:
    assert binding is not None
    return binding.buffer.address + binding.offset


def run_operator(
    operator: CompiledOperator, inputs: Sequence[npt.ArrayLike]
) -> list[npt.NDArray[np.generic]]:
    """Initialise a compiled operator, execute it on arrays, and return all its outputs."""
    device, desc = operator.device, operator.desc
    expect_type("Run", "Inputs", inputs, Sequence)
    check_count("Run", len(inputs), len(desc.inputs))
    contents = [
        _content(name, tensor, x) for (name, tensor), x in zip(desc.inputs, inputs, strict=True)
    ]
    owned: list[BufferBinding | None] = []
    others: list[BufferBinding | None] = []
    for (_, tensor), content in zip(desc.inputs, contents, strict=True):
        buffer = device.create_buffer(tensor.total_tensor_size_in_bytes)
        buffer.write(content)
        owned.append(BufferBinding(buffer) if tensor.owned else None)
        others.append(None if tensor.owned else BufferBinding(buffer))
    results = [
        device.create_buffer(tensor.total_tensor_size_in_bytes) for _, tensor in desc.outputs
    ]
    initialization = Initialization((operator,), (tuple(owned),))
    execution = Execution(operator, tuple(others), tuple(map(BufferBinding, results)))
    execute_steps(device, [("", initialization), ("", execution)])
    return [
        _elements(tensor, result) for (_, tensor), result in zip(desc.outputs, results, strict=True)
    ]


def _elements(tensor: BufferTensorDesc, buffer: Buffer) -> npt.NDArray[np.generic]:
    """Return the content of ``buffer`` as an array of the sizes and strides of ``tensor``."""
    strides = [stride * tensor.data_type.itemsize for stride in tensor.element_strides]
    data = buffer.read(tensor.bytes_reached)
    return np.ndarray(tensor.sizes, tensor.data_type.dtype, data, strides=strides)


def _content(name: str, tensor: BufferTensorDesc, value: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Return ``value`` as an array of the tensor's type, and of as many bytes as it reaches."""
    array = as_data(name, value)
    if array.dtype != tensor.data_type.dtype:
        expected = f"{tensor.data_type.dtype}, as its tensor has"
        raise DmlTypeError(name, "DataType", str(array.dtype), expected)
    if array.nbytes != tensor.bytes_reached:
        expected = f"{tensor.bytes_reached} bytes, from its first element to its last"
        raise DmlError(name, "Data", f"of {array.nbytes} bytes", expected)
    return array
