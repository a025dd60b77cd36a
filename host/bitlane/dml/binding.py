"""Bindings of buffers to tensors, binding tables, and operators at their stages of life."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from types import NoneType
from typing import TypeAlias

from ..errors import DmlError
from .buffer import Buffer, Parent
from .compiled import GRAPH, Program, Scratch
from .operators import InPlace, NamedTensors
from .refusals import expect_type, removed
from .tensor import MINIMUM_BUFFER_TENSOR_ALIGNMENT, BufferTensorDesc
from .types import ExecutionFlags


@dataclass(frozen=True, slots=True)
class BufferBinding:
    """``DML_BUFFER_BINDING``: a range of a buffer, in bytes; without a size, to the buffer's end.

    None takes the place of a binding where nothing is bound.
    """

    buffer: Buffer
    offset: int = 0
    size_in_bytes: int | None = None

    @property
    def end(self) -> int:
        """Offset of the byte behind the range."""
        if self.size_in_bytes is None:
            return self.buffer.size_in_bytes
        return self.offset + self.size_in_bytes


Bindings: TypeAlias = tuple[BufferBinding | None, ...]
"""A binding for each tensor."""


def check_list(method: str, bindings: object) -> None:
    """What a method binds is a list of some kind."""
    expect_type(method, "Bindings", bindings, Sequence, "a list of bindings")


def check_count(method: str, count: int, expected: int) -> None:
    """As many bindings as the operator has tensors.

    Source: "the number of bindings must exactly match", ``nf-directml-idmlbindingtable-bindinputs``
    and ``-bindoutputs``.
    """
    if count != expected:
        raise removed(method, "BindingCount", count, str(expected))


def check_bound(
    tensors: NamedTensors,
    bindings: Sequence[object],
    device: object,
    *,
    initializing: bool = False,
) -> Bindings:
    """``bindings`` of ``tensors`` to buffers of ``device``, each judged by itself."""
    checked: list[BufferBinding | None] = []
    for (name, tensor), binding in zip(tensors, bindings, strict=True):
        expect_type(
            name, "BindingType", binding, (BufferBinding, NoneType), "a BufferBinding or None"
        )
        assert isinstance(binding, BufferBinding | None)
        _check_presence(name, tensor, binding, initializing)
        if binding is not None:
            _check_binding(name, tensor, binding, device)
        checked.append(binding)
    return tuple(checked)


def _check_presence(
    name: str, tensor: BufferTensorDesc, binding: BufferBinding | None, initializing: bool
) -> None:
    """A tensor is bound at initialisation if DML owns it, and at execution if it does not.

    Source: ``ne-directml-dml_tensor_flags``, ``nf-directml-idmlbindingtable-bindinputs``. None of
    the bit operators has an optional tensor.
    """
    moment = "initialized" if initializing else "executed"
    if binding is not None and tensor.owned is not initializing:
        reason = "is OWNED_BY_DML" if tensor.owned else "is not OWNED_BY_DML"
        expected = f"nothing bound when the operator is {moment}, as the tensor {reason}"
        raise removed(name, "Buffer", "bound", expected)
    if binding is None and tensor.owned is initializing:
        raise removed(name, "Buffer", "not bound", f"a buffer when the operator is {moment}")


def _check_binding(
    name: str, tensor: BufferTensorDesc, binding: BufferBinding, device: object
) -> None:
    """The range is aligned, lies inside a living buffer of the device, and holds the tensor.

    Source: ``ns-directml-dml_buffer_binding``; GuaranteedBaseOffsetAlignment and
    TotalTensorSizeInBytes of ``ns-directml-dml_buffer_tensor_desc``; ``directml-constants``.
    """
    buffer, offset, given = binding.buffer, binding.offset, binding.size_in_bytes
    expect_type(name, "Buffer", buffer, Buffer, "a buffer of Device.create_buffer")
    expect_type(name, "Offset", offset, Integral, "an integer")
    expect_type(name, "SizeInBytes", given, (Integral, NoneType), "an integer or None")
    if buffer.device is not device:
        raise removed(name, "Buffer", "of another device", "a buffer that this device created")
    if buffer.closed:
        raise removed(name, "Buffer", "closed", "a buffer that exists")
    alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.guaranteed_base_offset_alignment)
    if offset < 0 or offset % alignment:
        raise removed(name, "Offset", offset, f"a multiple of {alignment}")
    rest = buffer.size_in_bytes - offset
    if rest < 0:
        expected = f"an offset inside the buffer's {buffer.size_in_bytes} bytes"
        raise removed(name, "Offset", offset, expected)
    size = binding.end - offset
    if size > rest:
        expected = f"at most {rest}, the bytes from offset {offset} to the buffer's end"
        raise removed(name, "SizeInBytes", size, expected)
    if size < tensor.total_tensor_size_in_bytes:
        expected = f"at least {tensor.total_tensor_size_in_bytes}, its TotalTensorSizeInBytes"
        raise removed(name, "SizeInBytes", size, expected)


def check_aliasing(desc: Program, inputs: Bindings, outputs: Bindings) -> None:
    """No output shares bytes with another, nor with an input, unless it takes its place exactly.

    Inputs may overlap one another. An output may be bound to the identical range of an input if
    the operator works in place; Sizes, Strides and TotalTensorSizeInBytes must be equal then, so
    that no element is written before it is read. This holds for every tensor that reads the input:
    a graph may read one in several layouts. Sources:
    ``nf-directml-idmlbindingtable-bindinputs``, whose present text asks for identical regions of an
    operator that supports in-place execution, and whose text before DirectML 1.7 for the same
    sizes, strides and total size too; "in-place execution" of the operators' pages, which let the
    output of AND, OR, XOR alias "one or more", of the shifts "one of" the inputs, and of BIT_COUNT
    none. No two outputs share a byte (``nf-directml-idmlbindingtable-bindoutputs``).
    """
    for number, output in enumerate(outputs):
        _check_apart(desc, number, outputs)
        _check_inputs(desc, number, output, inputs)


def _check_apart(desc: Program, number: int, outputs: Bindings) -> None:
    """An output shares no byte that its tensor reaches with an output before it."""
    name, tensor = desc.outputs[number]
    output = outputs[number]
    for (other_name, other_tensor), other in zip(desc.outputs, outputs[:number], strict=False):
        if output is None or other is None or other.buffer is not output.buffer:
            continue
        end = output.offset + tensor.total_tensor_size_in_bytes
        other_end = other.offset + other_tensor.total_tensor_size_in_bytes
        if other.offset < end and output.offset < other_end:
            expected = f"other bytes than {other_name}, {other.offset} to {other_end - 1}"
            raise removed(name, "Buffer", f"bytes {output.offset} to {end - 1}", expected)


def _check_inputs(
    desc: Program, number: int, output: BufferBinding | None, inputs: Bindings
) -> None:
    """An output takes the place of inputs only where the operator lets it."""
    output_name, output_tensor = desc.outputs[number]
    replaced: list[str] = []
    for (name, _), readers, binding in zip(desc.inputs, desc.readers, inputs, strict=True):
        if binding is None or output is None or binding.buffer is not output.buffer:
            continue
        if binding.end <= output.offset or output.end <= binding.offset:
            continue
        shown = f"bytes {output.offset} to {output.end - 1}"
        if (binding.offset, binding.end) != (output.offset, output.end):
            expected = (
                f"the same bytes as {name} or none of them; {name} is bytes {binding.offset} to"
                f" {binding.end - 1} of the same buffer"
            )
            raise removed(output_name, "Buffer", shown, expected)
        if desc.in_place is InPlace.NONE:
            expected = f"other bytes than {name}: {desc.operator_type} does not work in place"
            raise removed(output_name, "Buffer", shown, expected)
        for reader, tensor in readers:
            _check_same_layout(output_name, output_tensor, reader, tensor)
            replaced.append(reader)
    if desc.in_place is InPlace.ONE and len(replaced) > 1:
        shown = f"in place of {' and '.join(replaced)}"
        expected = f"the place of one input at most for {desc.operator_type}"
        raise removed(output_name, "Buffer", shown, expected)


def _check_same_layout(
    output_name: str, output: BufferTensorDesc, name: str, tensor: BufferTensorDesc
) -> None:
    """In place, both tensors visit the same elements in the same order."""
    for field, found, wanted in (
        ("Strides", list(output.element_strides), list(tensor.element_strides)),
        (
            "TotalTensorSizeInBytes",
            output.total_tensor_size_in_bytes,
            tensor.total_tensor_size_in_bytes,
        ),
    ):
        if found != wanted:
            raise removed(
                output_name, field, found, f"{wanted}, as in {name}, whose place it takes"
            )


@dataclass(frozen=True, slots=True)
class BindingProperties:
    """``DML_BINDING_PROPERTIES``. The bit operators need no temporary or persistent resource."""

    required_descriptor_count: int
    temporary_resource_size: int = 0
    persistent_resource_size: int = 0


class CompiledOperator:
    """``IDMLCompiledOperator``: of ``compile_operator`` or ``compile_graph`` of a device.

    It must be initialised exactly once.
    """

    def __init__(self, device: Parent, desc: Program, flags: ExecutionFlags) -> None:
        self.device = device
        self.desc = desc
        self.flags = flags
        self.initialized = False
        self.owned: dict[str, Buffer] = {}
        """Copies, made at initialisation, of the inputs that are OWNED_BY_DML."""
        self.scratch: Scratch | None = None
        """Memory for intermediate values, from initialisation on."""

    def __repr__(self) -> str:
        state = "initialized" if self.initialized else "not initialized"
        return f"<bitlane.dml.CompiledOperator: {self.desc.operator_type}, {state}>"

    @property
    def binding_properties(self) -> BindingProperties:
        """``GetBindingProperties``."""
        return BindingProperties(len(self.desc.inputs) + len(self.desc.outputs))

    def explain(self) -> str:
        """Return a table of the passes of a dispatch of a graph, beside those without fusion.

        Cycles are estimated for a memory that answers at once, or predicted by a device that does
        so. Raises ``DmlError`` for a single operator, which is one pass.
        """
        if self.desc.operator_type != GRAPH:
            expected = "a graph; an operator by itself is one pass"
            raise DmlError("Explain", "Type", self.desc.operator_type, expected)
        driver = self.device.driver
        return self.desc.explain(driver.geometry.abilities, driver.link)


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
