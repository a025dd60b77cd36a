"""Reads tensors that a model holds. Opens no file."""

from onnx import TensorProto, numpy_helper

from .._typing import AnyArray
from ..errors import OnnxError
from .model import quoted
from .types import read_type


def read_initializer(tensor: TensorProto) -> AnyArray:
    """Read an initializer. Raises ``OnnxError``, also for data outside the model."""
    where = f"initializer {quoted(tensor.name)}"
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise OnnxError(
            f"{where}: its data lies in another file; expected it in the model (onnx.load"
            " and onnx.save bring it there)"
        )
    dtype = read_type(where, tensor.data_type)
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise OnnxError(f"{where}: shape {shape}; expected 0 or more")
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError) as error:
        raise OnnxError(f"{where}: {error}; expected the bytes of {shape} {dtype}") from None
    if array.shape != shape or array.dtype != dtype:
        raise OnnxError(f"{where}: {array.dtype} of {array.shape}; expected {dtype} of {shape}")
    return array
