"""Recording of dispatches. Nothing is executed here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from .binding import Bindings
from .buffer import Parent
from .refusals import expect_type, removed
from .table import BindingTable, CompiledOperator, Dispatchable, OperatorInitializer
from .types import ExecutionFlags

__all__ = ["CommandList", "CommandRecorder", "Execution", "Initialization", "Step"]


@dataclass(frozen=True, slots=True)
class Initialization:
    """A dispatch of an initializer of ``operators``; for each, what its inputs are bound to."""

    operators: tuple[CompiledOperator, ...]
    inputs: tuple[Bindings, ...]


@dataclass(frozen=True, slots=True)
class Execution:
    """A dispatch of ``operator``, and what its tensors are bound to."""

    operator: CompiledOperator
    inputs: Bindings
    outputs: Bindings


Step: TypeAlias = Initialization | Execution


@dataclass(frozen=True, slots=True)
class _Volatile:
    """A dispatch of ``operator`` with what ``table`` holds when the list is executed."""

    operator: CompiledOperator
    table: BindingTable

    def resolve(self) -> Step:
        """The dispatch as it is now. Raises ``DmlError``."""
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

    def __init__(self, device: Parent) -> None:
        self.device = device
        self._recorded: list[Step | _Volatile] = []

    def __repr__(self) -> str:
        return f"<bitlane.dml.CommandList: dispatches: {len(self)}>"

    def __len__(self) -> int:
        return len(self._recorded)

    def reset(self) -> None:
        """Forget everything that was recorded."""
        self._recorded.clear()

    def append(self, step: Step | _Volatile) -> None:
        """Add a dispatch."""
        self._recorded.append(step)

    def steps(self) -> Iterator[Step]:
        """What is to be done, with the bindings of every dispatch checked. Raises ``DmlError``."""
        for step in self._recorded:
            yield step.resolve() if isinstance(step, _Volatile) else step


class CommandRecorder:
    """``IDMLCommandRecorder``: of ``Device.create_command_recorder``."""

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
