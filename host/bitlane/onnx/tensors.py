"""Tensors of ONNX models: their types, the shapes that are declared, and initializers.

Takes nothing that lies outside the model.
"""

from typing import Any, Final

import numpy as np
from onnx import TensorProto, TensorShapeProto, ValueInfoProto, numpy_helper

from ..jobs.operands import AnyArray
from .errors import OnnxError, quoted
from .graph import BitTensor, Dimension

__all__ = ["declared", "initializer", "onnx_name", "type_of"]

_INTEGERS: Final = tuple(f"{sign}INT{bits}" for sign in ("U", "") for bits in (8, 16, 32, 64))

_TYPES: Final = {
    "BOOL": np.dtype(np.bool_),
    **{name: np.dtype(name.lower()) for name in _INTEGERS},
    "FLOAT16": np.dtype(np.float16),
    "FLOAT": np.dtype(np.float32),
    "DOUBLE": np.dtype(np.float64),
}
"""The types that a device takes, by ONNX's names."""

_NAMES: Final = {dtype: f"tensor({name.lower()})" for name, dtype in _TYPES.items()}


def type_of(where: str, code: int) -> np.dtype[Any]:
    """The type of ONNX's number ``code``. Raises ``OnnxError`` for what no device takes."""
    known = code in TensorProto.DataType.values()
    name = TensorProto.DataType.Name(code) if known else str(code)
    if name not in _TYPES:
        raise OnnxError(f"{where}: data type {name}; expected one of {', '.join(_TYPES)}")
    return _TYPES[name]


def onnx_name(dtype: np.dtype[Any]) -> str:
    """What ONNX's schemas call tensors of ``dtype``."""
    return _NAMES[dtype]


def declared(what: str, info: ValueInfoProto) -> BitTensor:
    """An input or output of a graph, as ``what`` says. Raises ``OnnxError``."""
    where = f"{what} {quoted(info.name)}"
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        raise OnnxError(f"{where}: {kind or 'no type'}; expected a tensor")
    tensor = info.type.tensor_type
    dtype = type_of(where, tensor.elem_type)
    if not tensor.HasField("shape"):
        return BitTensor(info.name, dtype, None)
    shape = tuple(_dimension(where, axis) for axis in tensor.shape.dim)
    return BitTensor(info.name, dtype, shape)


def _dimension(where: str, axis: TensorShapeProto.Dimension) -> Dimension:
    if axis.HasField("dim_value"):
        if axis.dim_value < 0:
            raise OnnxError(f"{where}: an axis of {axis.dim_value}; expected 0 or more")
        return int(axis.dim_value)
    return str(axis.dim_param) or None


def initializer(tensor: TensorProto) -> AnyArray:
    """The elements of an initializer. Raises ``OnnxError``, also for data outside the model."""
    where = f"initializer {quoted(tensor.name)}"
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise OnnxError(
            f"{where}: its data lies in another file; expected it in the model (onnx.load"
            " and onnx.save bring it there)"
        )
    dtype = type_of(where, tensor.data_type)
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
