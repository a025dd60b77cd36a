"""Bindings of buffers to tensors, and what DirectML demands of them.

Raises ``DmlError`` with ``DXGI_ERROR_DEVICE_REMOVED``: DirectML removes its device then, because
these methods return nothing. bitlane's device stays usable. Nothing here touches a device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from types import NoneType
from typing import TypeAlias

from .buffer import Buffer
from .operators import InPlace, NamedTensors
from .program import Compiled
from .refusals import expect_type, removed
from .tensor import MINIMUM_BUFFER_TENSOR_ALIGNMENT, BufferTensorDesc

__all__ = [
    "Bindings",
    "BufferBinding",
    "check_aliasing",
    "check_bound",
    "check_count",
    "check_list",
]


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


def check_aliasing(desc: Compiled, inputs: Bindings, outputs: Bindings) -> None:
    """No output shares bytes with another, nor with an input, unless it takes its place exactly.

    Inputs may overlap one another. An output may be bound to the identical range of an input if
    the operator works in place; Sizes, Strides and TotalTensorSizeInBytes must be equal then, so
    that no element is written before it is read. Sources:
    ``nf-directml-idmlbindingtable-bindinputs``, whose present text asks for identical regions of an
    operator that supports in-place execution, and whose text before DirectML 1.7 for the same
    sizes, strides and total size too; "in-place execution" of the operators' pages, which let the
    output of AND, OR, XOR alias "one or more", of the shifts "one of" the inputs, and of BIT_COUNT
    none. No two outputs share a byte (``nf-directml-idmlbindingtable-bindoutputs``).
    """
    for number, output in enumerate(outputs):
        _check_apart(desc, number, outputs)
        _check_inputs(desc, number, output, inputs)


def _check_apart(desc: Compiled, number: int, outputs: Bindings) -> None:
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
    desc: Compiled, number: int, output: BufferBinding | None, inputs: Bindings
) -> None:
    """An output takes the place of inputs only where the operator lets it."""
    output_name, output_tensor = desc.outputs[number]
    replaced: list[str] = []
    for (name, tensor), binding in zip(desc.inputs, inputs, strict=True):
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
        _check_same_layout(output_name, output_tensor, name, tensor)
        replaced.append(name)
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
