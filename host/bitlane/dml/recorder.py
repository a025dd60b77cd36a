"""Recording of dispatches, and their execution as if one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import DmlError
from ..jobs.lowering import View, lower
from ..jobs.order import Job, in_order
from .binding import BufferBinding
from .buffer import PIECE, Parent
from .table import (
    BindingTable,
    CompiledOperator,
    Dispatchable,
    OperatorInitializer,
    expect_type,
)
from .tensor import BufferTensorDesc, packed_strides
from .types import ExecutionFlags, TensorFlags

__all__ = ["CommandList", "CommandRecorder", "run"]

_REMOVED = "DXGI_ERROR_DEVICE_REMOVED"


@dataclass(frozen=True, slots=True)
class _Initialization:
    operators: tuple[CompiledOperator, ...]
    inputs: tuple[tuple[BufferBinding | None, ...], ...]


@dataclass(frozen=True, slots=True)
class _Execution:
    operator: CompiledOperator
    inputs: tuple[BufferBinding | None, ...]
    outputs: tuple[BufferBinding | None, ...]


@dataclass(frozen=True, slots=True)
class _Volatile:
    """A dispatch of ``operator`` with what ``table`` holds when the list is executed."""

    operator: CompiledOperator
    table: BindingTable

    def resolve(self) -> "_Step":
        """The dispatch as it is now. Raises ``DmlError``."""
        if self.table.dispatchable is not self.operator:
            raise DmlError(
                str(self.operator.desc.operator_type),
                "BindingTable",
                "reset to another dispatchable since the dispatch was recorded",
                "the table of the operator until its volatile bindings have been executed",
                hresult=_REMOVED,
            )
        return _resolve(self.table)


_Step: TypeAlias = _Initialization | _Execution


class CommandList:
    """Dispatches in the order in which they were recorded; may be executed more than once."""

    def __init__(self, device: Parent) -> None:
        self.device = device
        self._recorded: list[_Step | _Volatile] = []

    def __repr__(self) -> str:
        return f"<bitlane.dml.CommandList: dispatches: {len(self)}>"

    def __len__(self) -> int:
        return len(self._recorded)

    def reset(self) -> None:
        """Forget everything that was recorded."""
        self._recorded.clear()

    def append(self, step: _Step | _Volatile) -> None:
        """Add a dispatch."""
        self._recorded.append(step)

    def steps(self) -> list[_Step]:
        """What is to be done, with the bindings of every dispatch checked. Raises ``DmlError``."""
        return [step.resolve() if isinstance(step, _Volatile) else step for step in self._recorded]


class CommandRecorder:
    """``IDMLCommandRecorder``: of ``Device.create_command_recorder``."""

    def __init__(self, device: Parent) -> None:
        self.device = device

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
            raise DmlError(
                "RecordDispatch",
                "BindingTable",
                "of another dispatchable",
                "a table created for, or reset to, the dispatchable",
                hresult=_REMOVED,
            )
        for name, thing in (("CommandList", command_list), ("BindingTable", table)):
            if thing.device is not self.device:
                raise DmlError(
                    "RecordDispatch", name, "of another device", "this device's", hresult=_REMOVED
                )
        if (
            isinstance(dispatchable, CompiledOperator)
            and dispatchable.flags & ExecutionFlags.DESCRIPTORS_VOLATILE
        ):
            command_list.append(_Volatile(dispatchable, table))
        else:
            command_list.append(_resolve(table))


def run(device: Parent, lists: Sequence[CommandList]) -> None:
    """Check all of ``lists``, then execute them. Raises ``DmlError`` before the first dispatch."""
    steps = [step for command_list in lists for step in command_list.steps()]
    _check_order(steps)
    jobs: list[Job] = []
    for step in steps:
        if isinstance(step, _Execution):
            jobs.append(_job(device, step))
            continue
        # What it copies may be what they write.
        _finish(device, jobs)
        _initialize(device, step)
    _finish(device, jobs)


def _finish(device: Parent, jobs: list[Job]) -> None:
    """Run ``jobs``, if any, and forget them."""
    if jobs:
        device.driver.run(in_order(jobs))
        jobs.clear()


def _resolve(table: BindingTable) -> _Step:
    target = table.dispatchable
    if isinstance(target, OperatorInitializer):
        return _Initialization(target.operators, table.resolve_initializer())
    return _Execution(target, *table.resolve_operator())


def _check_order(steps: Sequence[_Step]) -> None:
    """Every operator is initialised exactly once, before its first execution; buffers live.

    Source: ``nf-directml-idmldevice-createoperatorinitializer``.
    """
    done: set[int] = set()
    for step in steps:
        if isinstance(step, _Initialization):
            for operator in step.operators:
                if operator.initialized or id(operator) in done:
                    raise DmlError(
                        str(operator.desc.operator_type),
                        "State",
                        "initialized already",
                        "a compiled operator that is initialized exactly once",
                        hresult=_REMOVED,
                    )
                done.add(id(operator))
            bindings = [binding for group in step.inputs for binding in group]
        else:
            if not step.operator.initialized and id(step.operator) not in done:
                raise DmlError(
                    str(step.operator.desc.operator_type),
                    "State",
                    "not initialized",
                    "a compiled operator that an initializer has initialized",
                    hresult=_REMOVED,
                )
            bindings = [
                *step.inputs,
                *step.outputs,
                *map(BufferBinding, step.operator.owned.values()),
            ]
        if any(binding and binding.buffer.closed for binding in bindings):
            raise DmlError(
                "RecordDispatch", "Buffer", "closed", "buffers that exist", hresult=_REMOVED
            )


def _initialize(device: Parent, step: _Initialization) -> None:
    """Copy what DML is to own: afterwards, its buffers belong to the caller alone again."""
    for operator, bindings in zip(step.operators, step.inputs, strict=True):
        for (name, tensor), binding in zip(operator.desc.inputs, bindings, strict=True):
            if tensor.flags & TensorFlags.OWNED_BY_DML:
                assert binding is not None
                size = tensor.total_tensor_size_in_bytes
                copy = device.create_buffer(size)
                for start in range(0, size, PIECE):
                    count = min(PIECE, size - start)
                    copy.write(binding.buffer.read(count, binding.offset + start), start)
                operator.owned[name] = copy
        operator.initialized = True


def _job(device: Parent, step: _Execution) -> Job:
    operator = step.operator
    operands = []
    for (name, tensor), binding in zip(operator.desc.inputs, step.inputs, strict=True):
        owned = operator.owned.get(name)
        operands.append(_view(tensor, BufferBinding(owned) if owned else binding))
    _, output = operator.desc.outputs[0]
    target = _view(output, step.outputs[0])
    commands = lower(
        operator.desc.op,
        output.sizes,
        operands[0],
        operands[1] if len(operands) > 1 else None,
        target,
        geometry=device.driver.geometry,
    )
    reads = tuple(_addresses(view, output.sizes) for view in operands)
    return Job(commands, reads, _addresses(target, output.sizes))


def _addresses(view: View, sizes: Sequence[int]) -> range:
    """From the first byte of a view to its last."""
    reach = sum((size - 1) * step for size, step in zip(sizes, view.strides, strict=True))
    return range(view.address, view.address + reach + view.itemsize)


def _view(tensor: BufferTensorDesc, binding: BufferBinding | None) -> View:
    assert binding is not None
    itemsize = tensor.data_type.itemsize
    strides = packed_strides(tensor.sizes) if tensor.strides is None else tensor.strides
    return View(
        binding.buffer.address + binding.offset,
        tuple(stride * itemsize for stride in strides),
        itemsize,
    )
