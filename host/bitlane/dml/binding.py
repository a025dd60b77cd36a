"""Bindings of buffers to tensors, and what DirectML demands of them.

Raises ``DmlError`` with ``DXGI_ERROR_DEVICE_REMOVED``: DirectML removes its device then, because
these methods return nothing. bitlane's device stays usable. Nothing here touches a device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

from ..errors import DmlError, DmlTypeError
from .buffer import Buffer
from .operators import InPlace, OperatorDesc
from .tensor import MINIMUM_BUFFER_TENSOR_ALIGNMENT, BufferTensorDesc, element_strides
from .types import TensorFlags

__all__ = [
    "BufferBinding",
    "check_aliasing",
    "check_binding",
    "check_bindings",
    "check_count",
    "check_presence",
    "check_type",
]

_REMOVED = "DXGI_ERROR_DEVICE_REMOVED"


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


def check_bindings(method: str, bindings: object) -> None:
    """What a method binds is a list of some kind."""
    if not isinstance(bindings, Sequence):
        raise DmlTypeError(method, "Bindings", bindings, "a list of bindings", hresult=_REMOVED)


def check_type(name: str, binding: object) -> None:
    """It is nothing, or a range of a buffer in whole numbers."""
    if binding is None:
        return
    if not isinstance(binding, BufferBinding):
        raise DmlTypeError(
            name, "BindingType", binding, "a BufferBinding or None", hresult=_REMOVED
        )
    if not isinstance(binding.buffer, Buffer):
        raise DmlTypeError(
            name, "Buffer", binding.buffer, "a buffer of Device.create_buffer", hresult=_REMOVED
        )
    if not isinstance(binding.offset, Integral):
        raise DmlTypeError(name, "Offset", binding.offset, "an integer", hresult=_REMOVED)
    if not isinstance(binding.size_in_bytes, Integral | None):
        raise DmlTypeError(
            name, "SizeInBytes", binding.size_in_bytes, "an integer or None", hresult=_REMOVED
        )


def check_count(method: str, count: int, expected: int) -> None:
    """As many bindings as the operator has tensors.

    Source: "the number of bindings must exactly match", ``nf-directml-idmlbindingtable-bindinputs``
    and ``-bindoutputs``.
    """
    if count != expected:
        raise DmlError(method, "BindingCount", count, str(expected), hresult=_REMOVED)


def check_presence(
    name: str, tensor: BufferTensorDesc, binding: BufferBinding | None, initializing: bool
) -> bool:
    """Whether a tensor is bound: at initialisation if DML owns it, at execution if it does not.

    Source: ``ne-directml-dml_tensor_flags``, ``nf-directml-idmlbindingtable-bindinputs``. None of
    the bit operators has an optional tensor.
    """
    bound = binding is not None
    owned = bool(tensor.flags & TensorFlags.OWNED_BY_DML)
    moment = "initialized" if initializing else "executed"
    if bound and owned is not initializing:
        reason = "is OWNED_BY_DML" if owned else "is not OWNED_BY_DML"
        expected = f"nothing bound when the operator is {moment}, as the tensor {reason}"
        raise DmlError(name, "Buffer", "bound", expected, hresult=_REMOVED)
    if not bound and owned is initializing:
        expected = f"a buffer when the operator is {moment}"
        raise DmlError(name, "Buffer", "not bound", expected, hresult=_REMOVED)
    return bound


def check_binding(name: str, tensor: BufferTensorDesc, binding: BufferBinding) -> None:
    """The range is aligned, lies inside a living buffer, and holds the tensor.

    Source: ``ns-directml-dml_buffer_binding``; GuaranteedBaseOffsetAlignment and
    TotalTensorSizeInBytes of ``ns-directml-dml_buffer_tensor_desc``; ``directml-constants``.
    """
    buffer = binding.buffer
    if buffer.closed:
        raise DmlError(name, "Buffer", "closed", "a buffer that exists", hresult=_REMOVED)
    alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.guaranteed_base_offset_alignment)
    if binding.offset < 0 or binding.offset % alignment:
        raise DmlError(
            name, "Offset", binding.offset, f"a multiple of {alignment}", hresult=_REMOVED
        )
    if binding.offset > buffer.size_in_bytes:
        raise DmlError(
            name,
            "Offset",
            binding.offset,
            f"an offset inside the buffer's {buffer.size_in_bytes} bytes",
            hresult=_REMOVED,
        )
    size = binding.end - binding.offset
    if binding.end > buffer.size_in_bytes:
        raise DmlError(
            name,
            "SizeInBytes",
            size,
            f"at most {buffer.size_in_bytes - binding.offset}, the bytes from offset"
            f" {binding.offset} to the buffer's end",
            hresult=_REMOVED,
        )
    if size < tensor.total_tensor_size_in_bytes:
        raise DmlError(
            name,
            "SizeInBytes",
            size,
            f"at least {tensor.total_tensor_size_in_bytes}, its TotalTensorSizeInBytes",
            hresult=_REMOVED,
        )


def check_aliasing(
    desc: OperatorDesc,
    inputs: Sequence[BufferBinding | None],
    outputs: Sequence[BufferBinding | None],
) -> None:
    """The output shares bytes with no input, unless it takes the input's place exactly.

    Inputs may overlap one another. An output may be bound to the identical range of an input if
    the operator works in place; Sizes, Strides and TotalTensorSizeInBytes must be equal then, so
    that no element is written before it is read. Sources:
    ``nf-directml-idmlbindingtable-bindinputs``, whose present text asks for identical regions of an
    operator that supports in-place execution, and whose text before DirectML 1.7 for the same
    sizes, strides and total size too; "in-place execution" of the operators' pages, which let the
    output of AND, OR, XOR alias "one or more", of the shifts "one of" the inputs, and of BIT_COUNT
    none.
    """
    output_name, output_tensor = desc.outputs[0]
    output = outputs[0]
    replaced: list[str] = []
    for (name, tensor), binding in zip(desc.inputs, inputs, strict=True):
        if binding is None or output is None or binding.buffer is not output.buffer:
            continue
        first, second = (binding.offset, binding.end), (output.offset, output.end)
        if first[1] <= second[0] or second[1] <= first[0]:
            continue
        shown = f"bytes {second[0]} to {second[1] - 1}"
        if first != second:
            raise DmlError(
                output_name,
                "Buffer",
                shown,
                f"the same bytes as {name} or none of them; {name} is bytes {first[0]} to"
                f" {first[1] - 1} of the same buffer",
                hresult=_REMOVED,
            )
        if desc.in_place is InPlace.NONE:
            raise DmlError(
                output_name,
                "Buffer",
                shown,
                f"other bytes than {name}: {desc.operator_type} does not work in place",
                hresult=_REMOVED,
            )
        _check_same_layout(output_name, output_tensor, name, tensor)
        replaced.append(name)
    if desc.in_place is InPlace.ONE and len(replaced) > 1:
        raise DmlError(
            output_name,
            "Buffer",
            f"in place of {' and '.join(replaced)}",
            f"the place of one input at most for {desc.operator_type}",
            hresult=_REMOVED,
        )


def _check_same_layout(
    output_name: str, output: BufferTensorDesc, name: str, tensor: BufferTensorDesc
) -> None:
    """In place, both tensors visit the same elements in the same order."""
    if element_strides(output) != element_strides(tensor):
        raise DmlError(
            output_name,
            "Strides",
            list(element_strides(output)),
            f"{list(element_strides(tensor))}, as in {name}, whose place it takes",
            hresult=_REMOVED,
        )
    if output.total_tensor_size_in_bytes != tensor.total_tensor_size_in_bytes:
        raise DmlError(
            output_name,
            "TotalTensorSizeInBytes",
            output.total_tensor_size_in_bytes,
            f"{tensor.total_tensor_size_in_bytes}, as in {name}, whose place it takes",
            hresult=_REMOVED,
        )
