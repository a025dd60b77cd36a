"""Reads tensors that a model holds. Opens no file, and refuses tensors that lie in one."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, numpy_helper

from .._typing import AnyArray
from ..errors import OnnxError
from .model import quoted
from .types import read_type


def expect_no_files(model: ModelProto) -> None:
    """Raise ``OnnxError`` if a tensor of ``model`` is stored in another file."""
    for what, tensor in _tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
            raise OnnxError(
                f"{what} {quoted(tensor.name)}: its data lies in another file; expected it in the"
                " model (onnx.load and onnx.save bring it there)"
            )


def _tensors(model: ModelProto) -> Iterator[tuple[str, TensorProto]]:
    """Yield all tensors of ``model`` and what each is, those of subgraphs and functions, too."""
    graphs: list[GraphProto] = [model.graph]
    for info in model.training_info:
        graphs += (info.initialization, info.algorithm)
    nodes: list[NodeProto] = [node for function in model.functions for node in function.node]
    protos = [each for function in model.functions for each in function.attribute_proto]
    while graphs or nodes or protos:
        while graphs:
            graph = graphs.pop()
            yield from (("initializer", tensor) for tensor in graph.initializer)
            yield from _of_sparse(graph.sparse_initializer)
            nodes += graph.node
        while nodes:
            protos += nodes.pop().attribute
        while protos:
            # Each field, whatever type the attribute says it has.
            attribute = protos.pop()
            where = f"attribute {quoted(attribute.name)}: tensor"
            yield from ((where, tensor) for tensor in (attribute.t, *attribute.tensors))
            sparse = (attribute.sparse_tensor, *attribute.sparse_tensors)
            yield from _of_sparse(sparse)
            graphs += (attribute.g, *attribute.graphs)
    return


def _of_sparse(tensors: Iterable[SparseTensorProto]) -> Iterator[tuple[str, TensorProto]]:
    for sparse in tensors:
        yield "sparse tensor", sparse.values
        yield "sparse tensor", sparse.indices


def read_tensor(where: str, tensor: TensorProto) -> AnyArray:
    """Read a tensor; ``where`` names it.

    Raises ``OnnxLackingError`` for types that no device has, ``OnnxError`` for other bytes than
    its type and shape expect.
    """
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


_NUMBERS: Final = {
    "value_int": ("i", np.int64),
    "value_ints": ("ints", np.int64),
    "value_float": ("f", np.float32),
    "value_floats": ("floats", np.float32),
}
"""The field and the type of attributes of numbers."""


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """Return the tensor of a node ``Constant``; None if it holds strings or a sparse tensor."""
    if len(node.attribute) != 1:
        return None
    (attribute,) = node.attribute
    tensor = TensorProto()
    if attribute.name == "value":
        tensor.CopyFrom(attribute.t)
    elif attribute.name in _NUMBERS:
        field, dtype = _NUMBERS[attribute.name]
        tensor = numpy_helper.from_array(np.array(getattr(attribute, field), dtype))
    else:
        return None
    tensor.name = node.output[0]
    return tensor
