"""Operators at their stages of life, and the binding tables that give them buffers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import DmlError
from .binding import (
    Bindings,
    BufferBinding,
    check_aliasing,
    check_bound,
    check_count,
    check_list,
)
from .buffer import Buffer, Parent
from .program import Compiled, GraphProgram, Scratch
from .refusals import expect_type, removed
from .types import ExecutionFlags

__all__ = [
    "BindingProperties",
    "BindingTable",
    "CompiledOperator",
    "Dispatchable",
    "OperatorInitializer",
    "check_uninitialized",
]


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """``DML_BINDING_PROPERTIES``. The bit operators need no temporary or persistent resource."""

    required_descriptor_count: int
    temporary_resource_size: int = 0
    persistent_resource_size: int = 0


class CompiledOperator:
    """``IDMLCompiledOperator``: of ``compile_operator`` or ``compile_graph`` of a device.

    To be initialised exactly once.
    """

    def __init__(self, device: Parent, desc: Compiled, flags: ExecutionFlags) -> None:
        self.device = device
        self.desc = desc
        self.flags = flags
        self.initialized = False
        self.owned: dict[str, Buffer] = {}
        """Copies, made at initialisation, of the inputs that are OWNED_BY_DML."""
        self.scratch: Scratch | None = None
        """Of a graph, from initialisation on: memory for what is in between."""

    def __repr__(self) -> str:
        state = "initialized" if self.initialized else "not initialized"
        return f"<bitlane.dml.CompiledOperator: {self.desc.operator_type}, {state}>"

    @property
    def binding_properties(self) -> BindingProperties:
        """``GetBindingProperties``."""
        return BindingProperties(len(self.desc.inputs) + len(self.desc.outputs))

    def explain(self) -> str:
        """Of a graph: a table of the passes of a dispatch, and what they would be unfused.

        Cycles are estimated for a memory that answers at once. Raises ``DmlError`` for a single
        operator, which is one pass.
        """
        if not isinstance(self.desc, GraphProgram):
            expected = "a graph; an operator by itself is one pass"
            raise DmlError("Explain", "Type", self.desc.operator_type, expected)
        return self.desc.explain(self.device.driver.geometry)


def check_uninitialized(operator: CompiledOperator) -> None:
    """Raises ``DmlError`` if ``operator`` has been initialised."""
    expect_type("CreateOperatorInitializer", "Operator", operator, CompiledOperator)
    if operator.initialized:
        raise DmlError(
            str(operator.desc.operator_type),
            "State",
            "initialized already",
            "a compiled operator that is initialized exactly once",
        )


class OperatorInitializer:
    """``IDMLOperatorInitializer``: of ``Device.create_operator_initializer``; dispatched once."""

    def __init__(self, operators: Sequence[CompiledOperator]) -> None:
        self.reset(operators)

    def __repr__(self) -> str:
        return f"<bitlane.dml.OperatorInitializer: operators: {len(self.operators)}>"

    def reset(self, operators: Sequence[CompiledOperator]) -> None:
        """Use this object for other operators. Raises ``DmlError`` as creating one does."""
        for operator in operators:
            check_uninitialized(operator)
        self.operators = tuple(operators)

    @property
    def binding_properties(self) -> BindingProperties:
        """``GetBindingProperties``: a descriptor for each input that is OWNED_BY_DML."""
        tensors = [tensor for operator in self.operators for _, tensor in operator.desc.inputs]
        return BindingProperties(sum(tensor.owned for tensor in tensors))


Dispatchable: TypeAlias = CompiledOperator | OperatorInitializer


class BindingTable:
    """``IDMLBindingTable``: of ``Device.create_binding_table``.

    Each binding is judged when it is bound; whether input and output overlap is judged when the
    dispatch is recorded, so that a table can be bound anew for the next one.
    """

    def __init__(self, device: Parent, dispatchable: Dispatchable) -> None:
        self.device = device
        self.reset(dispatchable)

    def __repr__(self) -> str:
        return f"<bitlane.dml.BindingTable of {self.dispatchable}>"

    def reset(self, dispatchable: Dispatchable) -> None:
        """Unbind everything, and serve another dispatchable."""
        self.dispatchable = dispatchable
        # Bindings of an operator each, those that an initializer initialises.
        self._inputs: tuple[Bindings, ...] = ()
        self._outputs: Bindings = ()

    def bind_inputs(
        self, bindings: Sequence[BufferBinding | Sequence[BufferBinding | None] | None]
    ) -> None:
        """Bind the inputs in the order of the operator's description; an empty list unbinds all.

        For a compiled operator, a binding for each input: None where the input is OWNED_BY_DML.
        For an initializer, for each of its operators a list with a binding for each input (None
        where it is not OWNED_BY_DML), or None if it owns none. Raises ``DmlError``.
        """
        check_list("BindInputs", bindings)
        target = self.dispatchable
        if not bindings:
            self._inputs = ()
        elif isinstance(target, CompiledOperator):
            check_count("BindInputs", len(bindings), len(target.desc.inputs))
            self._inputs = (check_bound(target.desc.inputs, bindings, self.device),)
        else:
            check_count("BindInputs", len(bindings), len(target.operators))
            self._inputs = tuple(
                self._initial(operator, group)
                for operator, group in zip(target.operators, bindings, strict=True)
            )

    def bind_outputs(self, bindings: Sequence[BufferBinding | None]) -> None:
        """Bind the outputs of a compiled operator; an empty list unbinds them.

        An initializer's outputs are persistent resources, which no bit operator needs: None for
        each operator, or an empty list. Raises ``DmlError``.
        """
        check_list("BindOutputs", bindings)
        target = self.dispatchable
        if not bindings:
            self._outputs = ()
        elif isinstance(target, CompiledOperator):
            check_count("BindOutputs", len(bindings), len(target.desc.outputs))
            self._outputs = check_bound(target.desc.outputs, bindings, self.device)
        else:
            check_count("BindOutputs", len(bindings), len(target.operators))
            for binding in bindings:
                self.bind_persistent_resource(binding)

    def bind_temporary_resource(self, binding: BufferBinding | None) -> None:
        """Accepts None: no bit operator needs a temporary resource (its size is 0)."""
        _refuse_resource("TemporaryResource", binding)

    def bind_persistent_resource(self, binding: BufferBinding | None) -> None:
        """Accepts None: no bit operator needs a persistent resource (its size is 0)."""
        _refuse_resource("PersistentResource", binding)

    def resolve_initializer(self, target: OperatorInitializer) -> tuple[Bindings, ...]:
        """The bindings of an initializer's inputs, an operator each, all of them present."""
        groups = self._inputs or (None,) * len(target.operators)
        check_count("BindInputs", len(groups), len(target.operators))
        return tuple(
            self._initial(operator, group)
            for operator, group in zip(target.operators, groups, strict=True)
        )

    def resolve_operator(self, target: CompiledOperator) -> tuple[Bindings, Bindings]:
        """The bindings of a compiled operator's inputs and outputs, checked against each other."""
        desc = target.desc
        nothing: Bindings = (None,) * len(desc.inputs)
        inputs = check_bound(desc.inputs, (self._inputs or (nothing,))[0], self.device)
        unbound: Bindings = (None,) * len(desc.outputs)
        outputs = check_bound(desc.outputs, self._outputs or unbound, self.device)
        check_aliasing(desc, inputs, outputs)
        return inputs, outputs

    def _initial(self, operator: CompiledOperator, group: object) -> Bindings:
        """The bindings of an operator that is initialised; nothing stands for None for each."""
        if isinstance(group, BufferBinding):
            expected = "a list of bindings for each operator that is initialized"
            raise removed("BindInputs", "BindingType", "BUFFER", expected)
        inputs = operator.desc.inputs
        group = [] if group is None else group
        check_list("BindInputs", group)
        assert isinstance(group, Sequence)
        group = group or (None,) * len(inputs)
        check_count("BindInputs", len(group), len(inputs))
        return check_bound(inputs, group, self.device, initializing=True)


def _refuse_resource(name: str, binding: BufferBinding | None) -> None:
    if binding is not None:
        expected = "nothing bound: its size is 0 in the binding properties"
        raise removed(name, "Buffer", "bound", expected)
