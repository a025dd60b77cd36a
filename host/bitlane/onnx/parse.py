"""Reads ONNX models: each node is one that the device computes, or has a reason against it."""

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    inliner,
)

from .._typing import AnyArray
from ..errors import OnnxError, OnnxLackingError
from .binary import rewrite_binary
from .inference import Inference, check_model, one_line
from .model import BitTensor, quoted
from .nodes import OWN_DOMAINS, UNDEFINED, expect_opset, label_of, read_node, subgraphs_of
from .tensors import constant_tensor, expect_no_files, read_tensor
from .types import read_declaration
from .whole import WholeModel, WholeNode


def load(path: str | Path) -> ModelProto:
    """Read the model in the file ``path``, unchecked, and without data in other files.

    Raises ``OnnxError`` for a file of another format, ``OSError`` if it cannot be read.
    """
    try:
        model: ModelProto = ModelProto.FromString(Path(path).read_bytes())
    except DecodeError:
        raise OnnxError(f"{path}: not ONNX's format, or cut off; expected an ONNX model") from None
    return model


def read_model(model: ModelProto, *, binary: bool = False) -> WholeModel:
    """Read ``model``, checked down to the type of every name that the device computes.

    ``binary``: rewrite binary layers, which then need another backend for the rest of them.
    Raises ``OnnxError`` for anything but a model; the result has the error of a model that ONNX's
    own checker refuses. Opens no file.
    """
    if not isinstance(model, ModelProto):
        kind = type(model).__name__
        raise OnnxError(
            f"model: of type {kind}; expected a ModelProto (bitlane.onnx.load reads one)"
        )
    try:
        return _read(model, binary=binary)
    except UnicodeDecodeError as error:
        raise OnnxError(f"model: {one_line(error)}; expected text in UTF-8") from None


def _read(model: ModelProto, *, binary: bool) -> WholeModel:
    if model.training_info:
        raise OnnxError("model: training_info; expected a graph alone")
    # First: nothing below may follow a reference to another file.
    expect_no_files(model)
    flat = _without_functions(model)
    if binary:
        flat = rewrite_binary(flat)
    opset = _opset(flat)
    return _Reader(flat, opset).read()


def _without_functions(model: ModelProto) -> ModelProto:
    """Return a copy of ``model`` with the nodes of its functions, and one name of ONNX's domain."""
    if model.functions:
        check_model(model)
        model = _inline(model)
    flat = ModelProto()
    flat.CopyFrom(model)
    # Other packages know ONNX's own operators by the empty domain alone.
    own = {name for name in OWN_DOMAINS if name}
    for each in flat.opset_import:
        each.domain = "" if each.domain in own else each.domain
    for node in _all_nodes(flat.graph):
        node.domain = "" if node.domain in own else node.domain
    return flat


def _inline(model: ModelProto) -> ModelProto:
    """Return ``model`` with the nodes of its functions in place of each call.

    onnx.inliner drops the defaults of a function's attributes, so that each call has to give all of
    them. Functions that no other one calls are inlined first, because the call of a function has
    the attributes of the calls in it. The inliner knows functions by their names, so that all
    overloads of one are inlined together.
    """
    defaults = {_function(each): list(each.attribute_proto) for each in model.functions}
    while model.functions:
        called = {_call(node) for each in model.functions for node in _all_nodes(each)}
        inner = {each[:2] for each in called.intersection(defaults)}
        outer = [each for each in map(_function, model.functions) if each[:2] not in inner]
        if not outer:
            some = ", ".join(sorted(quoted(f"{domain}.{name}") for domain, name in inner))
            raise OnnxError(f"functions {some}: overloads call each other; expected other names")
        known = ModelProto()
        known.CopyFrom(model)
        for node in _all_nodes(known.graph):
            given = {each.name for each in node.attribute}
            missing = (x for x in defaults.get(_call(node), ()) if x.name not in given)
            node.attribute.extend(missing)
        names = ", ".join(quoted(f"{domain}.{name}") for domain, name, _ in outer)
        try:
            model = inliner.inline_selected_functions(known, [each[:2] for each in outer])
        except (RuntimeError, ValueError) as error:
            raise OnnxError(f"functions {names}: onnx.inliner: {one_line(error)}") from None
        if not {*outer}.isdisjoint(map(_function, model.functions)):
            raise OnnxError(f"functions {names}: onnx.inliner leaves them; expected calls of them")
    return model


def _function(function: FunctionProto) -> tuple[str, str, str]:
    return function.domain, function.name, function.overload


def _call(node: NodeProto) -> tuple[str, str, str]:
    return node.domain, node.op_type, node.overload


def _all_nodes(graph: GraphProto | FunctionProto) -> Iterable[NodeProto]:
    """Yield the nodes of ``graph`` and of its subgraphs."""
    graphs = [graph]
    while graphs:
        for node in graphs.pop().node:
            yield node
            graphs += subgraphs_of(node)


def _opset(model: ModelProto) -> int:
    """Return the version of ONNX's own operators."""
    versions = [each.version for each in model.opset_import if each.domain in OWN_DOMAINS]
    if len(versions) != 1:
        raise OnnxError(f"model: {len(versions)} opsets of ONNX's own operators; expected one")
    return expect_opset("model", versions[0])


class _Reader:
    """Reads the graph of a model, in the order initializers, inputs, nodes, outputs."""

    def __init__(self, model: ModelProto, opset: int) -> None:
        self._model = model
        self._opset = opset
        self._inference = Inference(model)
        self._types: dict[str, np.dtype[Any] | str] = {}
        self._constants: dict[str, AnyArray] = {}
        self._tensors: dict[str, TensorProto] = {}

    def read(self) -> WholeModel:
        graph = self._model.graph
        if graph.sparse_initializer:
            raise OnnxError("graph: sparse initializers; expected dense ones")
        for tensor in graph.initializer:
            self._add_constant(tensor, "initializer")
        inputs = tuple(_input(info, self._tensors, self._constants) for info in graph.input)
        defaults = {}
        for x in inputs:
            if x.name in self._tensors:
                defaults[x.name] = self._constants.pop(x.name)
                del self._tensors[x.name]
            else:
                _expect_new(x.name, "input", self._types)
                self._types[x.name] = x.dtype
        nodes = [
            node
            for number, each in enumerate(graph.node)
            if (node := self._node(each, number)) is not None
        ]
        outputs = self._outputs()
        return WholeModel(
            graph.name,
            inputs,
            defaults,
            self._constants,
            self._tensors,
            tuple(nodes),
            outputs,
            self._inference,
            self._model,
            self._error(),
        )

    def _error(self) -> OnnxError | None:
        """Return why ONNX's own checker refuses the model, if it does."""
        try:
            check_model(self._model)
        except OnnxError as error:
            return error
        return self._inference.error

    def _add_constant(self, tensor: TensorProto, what: str) -> None:
        """Add an initializer or the value of a Constant node."""
        _expect_new(tensor.name, what, self._types)
        self._tensors[tensor.name] = tensor
        try:
            array = read_tensor(f"{what} {quoted(tensor.name)}", tensor)
        except OnnxLackingError as error:
            # Another backend may know the type; nodes that read it are not the device's.
            self._types[tensor.name] = str(error)
        else:
            self._constants[tensor.name] = array
            self._types[tensor.name] = array.dtype

    def _node(self, proto: NodeProto, number: int) -> WholeNode | None:
        """Read a node; None for a constant."""
        label = label_of(proto, number)
        if proto.op_type == "Constant" and proto.domain in OWN_DOMAINS and len(proto.output) == 1:
            tensor = constant_tensor(proto)
            if tensor is not None:
                self._add_constant(tensor, f"{label}: output")
                return None
        try:
            device = read_node(proto, number, self._types, self._opset, self._constants)
        except OnnxLackingError as error:
            return self._lacking(proto, label, str(error))
        _expect_new(device.output, f"{label}: output", self._types)
        self._types[device.output] = device.dtype
        return WholeNode(label, proto, tuple(filter(None, proto.input)), (device.output,), device)

    def _lacking(self, proto: NodeProto, label: str, reason: str) -> WholeNode:
        inputs = dict.fromkeys([*filter(None, proto.input), *captured(proto)])
        for name in inputs:
            if name not in self._types:
                raise OnnxError(f"{label}: input {quoted(name)}: {UNDEFINED}")
        outputs = tuple(filter(None, proto.output))
        for name in outputs:
            _expect_new(name, f"{label}: output", self._types)
            self._types[name] = self._inference.type_of(name)
        return WholeNode(label, proto, tuple(inputs), outputs, None, reason)

    def _outputs(self) -> tuple[BitTensor, ...]:
        outputs = [read_declaration("output", info) for info in self._model.graph.output]
        if not outputs:
            raise OnnxError("graph: no outputs; expected one at least")
        given = set()
        for x in outputs:
            if x.name in given:
                raise OnnxError(f"output {quoted(x.name)}: there twice; expected it once")
            given.add(x.name)
            if x.name not in self._types:
                raise OnnxError(f"output {quoted(x.name)}: nothing in the graph gives it")
            known = self._types[x.name]
            if known != x.dtype and not isinstance(known, str):
                raise OnnxError(f"output {quoted(x.name)}: it is {known}; declared as {x}")
        return tuple(outputs)


def captured(node: NodeProto) -> list[str]:
    """Return the values from outside that the subgraphs of ``node`` read, each once."""
    found: dict[str, None] = {}
    waiting = [(graph, frozenset[str]()) for graph in subgraphs_of(node)]
    while waiting:
        graph, outer = waiting.pop()
        known = {*outer, *(x.name for x in graph.input), *(x.name for x in graph.initializer)}
        known.update(x.values.name for x in graph.sparse_initializer)
        for each in graph.node:
            found.update(dict.fromkeys(name for name in each.input if name and name not in known))
            waiting += [(inner, frozenset(known)) for inner in subgraphs_of(each)]
            known.update(each.output)
        found.update(dict.fromkeys(x.name for x in graph.output if x.name not in known))
    return list(found)


def _input(
    info: ValueInfoProto, tensors: Container[str], constants: Mapping[str, AnyArray]
) -> BitTensor:
    """Read an input, and check its initializer if it has one."""
    result = read_declaration("input", info)
    if result.name in tensors:
        default = constants.get(result.name)
        if default is None or default.dtype != result.dtype:
            name, found = quoted(result.name), "another type" if default is None else default.dtype
            raise OnnxError(f"initializer {name}: {found}; declared as {result}")
        result.expect_shape(default.shape, {})
    return result


def _expect_new(name: str, what: str, names: Container[str]) -> None:
    if not name or name in names:
        raise OnnxError(f"{what} {quoted(name)}: expected a name that nothing else has")
