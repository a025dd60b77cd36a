"""An operator or a graph on arrays in one call: its buffers come and go with it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import DmlError, DmlTypeError
from .binding import BufferBinding, check_count
from .buffer import Buffer
from .execution import execute_steps
from .recorder import Execution, Initialization
from .refusals import expect_type
from .table import CompiledOperator
from .tensor import BufferTensorDesc

__all__ = ["run_operator"]


def run_operator(
    operator: CompiledOperator, inputs: Sequence[npt.ArrayLike]
) -> list[npt.NDArray[np.generic]]:
    """What ``Device.run`` does with an operator that has just been compiled: all its outputs."""
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
    execute_steps(device, [initialization, execution])
    return [
        _elements(tensor, result) for (_, tensor), result in zip(desc.outputs, results, strict=True)
    ]


def _elements(tensor: BufferTensorDesc, buffer: Buffer) -> npt.NDArray[np.generic]:
    """An array of the sizes and strides of ``tensor``, which ``buffer`` holds."""
    strides = [stride * tensor.data_type.itemsize for stride in tensor.element_strides]
    data = buffer.read(tensor.bytes_reached)
    return np.ndarray(tensor.sizes, tensor.data_type.dtype, data, strides=strides)


def _content(name: str, tensor: BufferTensorDesc, value: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """``value`` as an array of the tensor's type, and of as many bytes as the tensor reaches."""
    array = np.asarray(value)
    if array.dtype != tensor.data_type.dtype:
        expected = f"{tensor.data_type.dtype}, as its tensor has"
        raise DmlTypeError(name, "DataType", str(array.dtype), expected)
    if array.nbytes != tensor.bytes_reached:
        expected = f"{tensor.bytes_reached} bytes, from its first element to its last"
        raise DmlError(name, "Data", f"of {array.nbytes} bytes", expected)
    return array
