"""Reads ONNX models into graphs of bit operators; other operators are refused by name."""

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, ValueInfoProto, checker

from .._typing import AnyArray
from ..errors import OnnxError
from .model import BitGraph, BitTensor, quoted
from .nodes import OWN_DOMAINS, expect_opset, read_node
from .tensors import read_initializer
from .types import read_declaration


def load(path: str | Path) -> ModelProto:
    """Read the model in the file ``path``, unchecked, and without data in other files.

    Raises ``OnnxError`` for a file of another format, ``OSError`` if it cannot be read.
    """
    try:
        model: ModelProto = ModelProto.FromString(Path(path).read_bytes())
    except DecodeError:
        raise OnnxError(f"{path}: not ONNX's format, or cut off; expected an ONNX model") from None
    return model


def read_graph(model: ModelProto) -> BitGraph:
    """Read the graph of ``model``, checked down to the type of every name.

    Raises ``OnnxError`` for anything but a model, and for unsupported operators. Opens no file.
    """
    if not isinstance(model, ModelProto):
        kind = type(model).__name__
        raise OnnxError(
            f"model: of type {kind}; expected a ModelProto (bitlane.onnx.load reads one)"
        )
    for name in ("functions", "training_info"):
        if getattr(model, name):
            raise OnnxError(f"model: {name}; expected a graph alone")
    opset = _opset(model)
    graph = _graph(model.graph, opset)
    # Last, after the refusal of all references to other files.
    try:
        checker.check_model(model)
    except (checker.ValidationError, UnicodeDecodeError) as error:
        # Its words span lines, and hold names as they are.
        words = repr(" ".join(str(error).split()))[1:-1]
        raise OnnxError(f"model: onnx.checker: {words:.200}") from None
    return graph


def _opset(model: ModelProto) -> int:
    """Return the version of ONNX's own operators."""
    versions = [each.version for each in model.opset_import if each.domain in OWN_DOMAINS]
    if len(versions) != 1:
        raise OnnxError(f"model: {len(versions)} opsets of ONNX's own operators; expected one")
    return expect_opset("model", versions[0])


def _graph(graph: GraphProto, opset: int) -> BitGraph:
    if graph.sparse_initializer:
        raise OnnxError("graph: sparse initializers; expected dense ones")
    constants: dict[str, AnyArray] = {}
    types: dict[str, np.dtype[Any]] = {}
    for tensor in graph.initializer:
        _expect_new(tensor.name, "initializer", types)
        constants[tensor.name] = read_initializer(tensor)
        types[tensor.name] = constants[tensor.name].dtype
    inputs = tuple(_input(info, constants) for info in graph.input)
    for x in inputs:
        if x.name not in constants:
            _expect_new(x.name, "input", types)
            types[x.name] = x.dtype
    nodes = []
    for number, each in enumerate(graph.node):
        node = read_node(each, number, types, opset)
        _expect_new(node.output, f"{node.label}: output", types)
        types[node.output] = node.dtype
        nodes.append(node)
    outputs = [read_declaration("output", info) for info in graph.output]
    if not outputs:
        raise OnnxError("graph: no outputs; expected one at least")
    given = set()
    for x in outputs:
        if x.name in given:
            raise OnnxError(f"output {quoted(x.name)}: there twice; expected it once")
        given.add(x.name)
        if x.name not in types:
            raise OnnxError(f"output {quoted(x.name)}: nothing in the graph gives it")
        if types[x.name] != x.dtype:
            raise OnnxError(f"output {quoted(x.name)}: it is {types[x.name]}; declared as {x}")
    return BitGraph(graph.name, inputs, constants, tuple(nodes), tuple(outputs))


def _input(info: ValueInfoProto, constants: Mapping[str, AnyArray]) -> BitTensor:
    """Read an input, and check its initializer if it has one."""
    result = read_declaration("input", info)
    default = constants.get(result.name)
    if default is not None:
        if default.dtype != result.dtype:
            name = quoted(result.name)
            raise OnnxError(f"initializer {name}: {default.dtype}; declared as {result}")
        result.expect_shape(default.shape, {})
    return result


def _expect_new(name: str, what: str, names: Container[str]) -> None:
    if not name or name in names:
        raise OnnxError(f"{what} {quoted(name)}: expected a name that nothing else has")
