"""Operators at their stages of life, and the binding tables that give them buffers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import DmlError, DmlTypeError
from .binding import (
    BufferBinding,
    check_aliasing,
    check_binding,
    check_bindings,
    check_count,
    check_presence,
    check_type,
)
from .buffer import Buffer, Parent
from .operators import OperatorDesc
from .types import ExecutionFlags, TensorFlags

__all__ = [
    "BindingProperties",
    "BindingTable",
    "CompiledOperator",
    "Dispatchable",
    "Operator",
    "OperatorInitializer",
    "check_uninitialized",
    "expect_type",
]


def expect_type(method: str, name: str, value: object, *kinds: type) -> None:
    """Raises ``DmlTypeError`` if an argument of ``method`` is none of ``kinds``."""
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise DmlTypeError(method, name, value, f"of type {names}")


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """``DML_BINDING_PROPERTIES``. The bit operators need no temporary or persistent resource."""

    required_descriptor_count: int
    temporary_resource_size: int = 0
    persistent_resource_size: int = 0


class Operator:
    """``IDMLOperator``: a description that has passed every rule. Of ``Device.create_operator``."""

    def __init__(self, device: Parent, desc: OperatorDesc) -> None:
        self.device = device
        self.desc = desc

    def __repr__(self) -> str:
        return f"<bitlane.dml.Operator: {self.desc.operator_type}>"


class CompiledOperator:
    """``IDMLCompiledOperator``: of ``Device.compile_operator``; to be initialised exactly once."""

    def __init__(self, operator: Operator, flags: ExecutionFlags) -> None:
        self.device = operator.device
        self.desc = operator.desc
        self.flags = flags
        self.initialized = False
        self.owned: dict[str, Buffer] = {}
        """Copies, made at initialisation, of the inputs that are OWNED_BY_DML."""

    def __repr__(self) -> str:
        state = "initialized" if self.initialized else "not initialized"
        return f"<bitlane.dml.CompiledOperator: {self.desc.operator_type}, {state}>"

    @property
    def binding_properties(self) -> BindingProperties:
        """``GetBindingProperties``."""
        return BindingProperties(len(self.desc.inputs) + len(self.desc.outputs))


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
        self.operators = tuple(operators)

    def reset(self, operators: Sequence[CompiledOperator]) -> None:
        """Use this object for other operators. Raises ``DmlError`` as creating one does."""
        for operator in operators:
            check_uninitialized(operator)
        self.operators = tuple(operators)

    @property
    def binding_properties(self) -> BindingProperties:
        """``GetBindingProperties``: a descriptor for each input that is OWNED_BY_DML."""
        owned = [
            name
            for operator in self.operators
            for name, tensor in operator.desc.inputs
            if tensor.flags & TensorFlags.OWNED_BY_DML
        ]
        return BindingProperties(len(owned))


Dispatchable: TypeAlias = CompiledOperator | OperatorInitializer

_Bindings: TypeAlias = tuple[BufferBinding | None, ...]


class BindingTable:
    """``IDMLBindingTable``: of ``Device.create_binding_table``.

    Each binding is judged when it is bound; whether input and output overlap is judged when the
    dispatch is recorded, so that a table can be bound anew for the next one.
    """

    def __init__(self, device: Parent, dispatchable: Dispatchable) -> None:
        self.device = device
        self.reset(dispatchable)

    def reset(self, dispatchable: Dispatchable) -> None:
        """Unbind everything, and serve another dispatchable."""
        self.dispatchable = dispatchable
        self._inputs: tuple[_Bindings, ...] = ()
        self._outputs: _Bindings = ()

    def bind_inputs(
        self, bindings: Sequence[BufferBinding | Sequence[BufferBinding | None] | None]
    ) -> None:
        """Bind the inputs in the order of the operator's description; an empty list unbinds all.

        For a compiled operator, a binding for each input: None where the input is OWNED_BY_DML.
        For an initializer, for each of its operators a list with a binding for each input (None
        where it is not OWNED_BY_DML), or None if it owns none. Raises ``DmlError``.
        """
        check_bindings("BindInputs", bindings)
        if not bindings:
            self._inputs = ()
            return
        target = self.dispatchable
        if isinstance(target, CompiledOperator):
            check_count("BindInputs", len(bindings), len(target.desc.inputs))
            self._inputs = (self._checked(target, bindings, initializing=False),)
            return
        check_count("BindInputs", len(bindings), len(target.operators))
        groups = []
        for operator, group in zip(target.operators, bindings, strict=True):
            if isinstance(group, BufferBinding):
                raise DmlError(
                    "BindInputs",
                    "BindingType",
                    "BUFFER",
                    "a list of bindings for each operator that is initialized",
                    hresult="DXGI_ERROR_DEVICE_REMOVED",
                )
            count = len(operator.desc.inputs)
            group = (None,) * count if group is None else group
            check_bindings("BindInputs", group)
            group = group or (None,) * count
            check_count("BindInputs", len(group), count)
            groups.append(self._checked(operator, group, initializing=True))
        self._inputs = tuple(groups)

    def bind_outputs(self, bindings: Sequence[BufferBinding | None]) -> None:
        """Bind the output of a compiled operator; an empty list unbinds it.

        An initializer's outputs are persistent resources, which no bit operator needs: None for
        each operator, or an empty list. Raises ``DmlError``.
        """
        check_bindings("BindOutputs", bindings)
        if not bindings:
            self._outputs = ()
            return
        target = self.dispatchable
        if isinstance(target, OperatorInitializer):
            check_count("BindOutputs", len(bindings), len(target.operators))
            for binding in bindings:
                self._refuse_resource("PersistentResource", binding)
            return
        check_count("BindOutputs", len(bindings), len(target.desc.outputs))
        for (name, tensor), binding in zip(target.desc.outputs, bindings, strict=True):
            check_type(name, binding)
            if check_presence(name, tensor, binding, False) and binding is not None:
                self._check_device(name, binding)
                check_binding(name, tensor, binding)
        self._outputs = tuple(bindings)

    def bind_temporary_resource(self, binding: BufferBinding | None) -> None:
        """Accepts None: no bit operator needs a temporary resource (its size is 0)."""
        self._refuse_resource("TemporaryResource", binding)

    def bind_persistent_resource(self, binding: BufferBinding | None) -> None:
        """Accepts None: no bit operator needs a persistent resource (its size is 0)."""
        self._refuse_resource("PersistentResource", binding)

    def resolve_initializer(self) -> tuple[_Bindings, ...]:
        """The bindings of an initializer's inputs, an operator each, all of them present."""
        target = self.dispatchable
        assert isinstance(target, OperatorInitializer)
        groups = self._inputs or tuple(
            (None,) * len(operator.desc.inputs) for operator in target.operators
        )
        if len(groups) != len(target.operators):
            check_count("BindInputs", len(groups), len(target.operators))
        return tuple(
            self._checked(operator, group, initializing=True)
            for operator, group in zip(target.operators, groups, strict=True)
        )

    def resolve_operator(self) -> tuple[_Bindings, _Bindings]:
        """The bindings of a compiled operator's inputs and outputs, checked against each other."""
        target = self.dispatchable
        assert isinstance(target, CompiledOperator)
        inputs = self._inputs[0] if self._inputs else (None,) * len(target.desc.inputs)
        outputs = self._outputs or (None,)
        inputs = self._checked(target, inputs, initializing=False)
        for (name, tensor), binding in zip(target.desc.outputs, outputs, strict=True):
            if check_presence(name, tensor, binding, False) and binding is not None:
                check_binding(name, tensor, binding)
        check_aliasing(target.desc, inputs, outputs)
        return inputs, outputs

    def _checked(
        self,
        operator: CompiledOperator,
        bindings: Sequence[BufferBinding | Sequence[BufferBinding | None] | None],
        initializing: bool,
    ) -> _Bindings:
        checked: list[BufferBinding | None] = []
        for (name, tensor), binding in zip(operator.desc.inputs, bindings, strict=True):
            check_type(name, binding)
            assert binding is None or isinstance(binding, BufferBinding)
            bound = check_presence(name, tensor, binding, initializing)
            if bound and binding is not None:
                self._check_device(name, binding)
                check_binding(name, tensor, binding)
            checked.append(binding if bound else None)
        return tuple(checked)

    def _check_device(self, name: str, binding: BufferBinding) -> None:
        if binding.buffer.device is not self.device:
            raise DmlError(
                name,
                "Buffer",
                "of another device",
                "a buffer that this device created",
                hresult="DXGI_ERROR_DEVICE_REMOVED",
            )

    @staticmethod
    def _refuse_resource(name: str, binding: BufferBinding | None) -> None:
        if binding is not None:
            raise DmlError(
                name,
                "Buffer",
                "bound",
                "nothing bound: its size is 0 in the binding properties",
                hresult="DXGI_ERROR_DEVICE_REMOVED",
            )
