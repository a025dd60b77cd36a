"""The types of a device's tensors by ONNX's names, and the declarations of inputs and outputs."""

from typing import Any, Final

import numpy as np
from onnx import TensorProto, TensorShapeProto, ValueInfoProto

from ..errors import OnnxError, OnnxLackingError
from .model import BitTensor, Dimension, quoted

_INTEGERS: Final = tuple(f"{sign}INT{bits}" for sign in ("U", "") for bits in (8, 16, 32, 64))

BOOL: Final = np.dtype(np.bool_)

TYPES: Final = {
    "BOOL": BOOL,
    **{name: np.dtype(name.lower()) for name in _INTEGERS},
    "FLOAT16": np.dtype(np.float16),
    "FLOAT": np.dtype(np.float32),
    "DOUBLE": np.dtype(np.float64),
}
"""The types of a device's tensors, by ONNX's names."""

_NAMES: Final = {dtype: f"tensor({name.lower()})" for name, dtype in TYPES.items()}


def read_type(where: str, code: int) -> np.dtype[Any]:
    """Return the type of ONNX's number ``code``.

    Raises ``OnnxLackingError`` for other types of ONNX's, ``OnnxError`` for other numbers.
    """
    known = code in TensorProto.DataType.values()
    name = TensorProto.DataType.Name(code) if known else str(code)
    if name not in TYPES:
        kind = OnnxLackingError if known else OnnxError
        raise kind(f"{where}: data type {name}; expected one of {', '.join(TYPES)}")
    return TYPES[name]


def schema_name(dtype: np.dtype[Any]) -> str:
    """Return the name of tensors of ``dtype`` in ONNX's schemas."""
    return _NAMES[dtype]


def read_declaration(what: str, info: ValueInfoProto) -> BitTensor:
    """Read an input or output of a graph; ``what`` names it. Raises ``OnnxError``."""
    where = f"{what} {quoted(info.name)}"
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        raise OnnxError(f"{where}: {kind or 'no type'}; expected a tensor")
    tensor = info.type.tensor_type
    dtype = read_type(where, tensor.elem_type)
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
