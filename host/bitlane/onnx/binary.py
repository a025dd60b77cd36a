"""Binary layers: products of 1 and -1 become counts of bits that differ, in ONNX's own operators.

A layer is ``MatMul`` of activations ``Where(c, 1, -1)`` and constant weights of 1 and -1: K
products, of which d are -1, add up to K - 2d. QONNX's ``BipolarQuant`` is such a Where.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .._typing import AnyArray
from ..errors import OnnxError
from .inference import Inference, check_model
from .model import BitTensor
from .nodes import subgraphs_of
from .tensors import constant_tensor, read_tensor

_BIPOLAR: Final = "BipolarQuant"
_DOMAINS: Final = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
"""The domains in which exports have `_BIPOLAR`."""

_FIRST: Final = 13
"""The opset as of which axes are inputs of nodes."""

_EXACT: Final = {np.dtype(np.float32): 1 << 24, np.dtype(np.float64): 1 << 53}
"""The terms of 1 and -1 whose sum each float type holds, in whatever order they are added."""


def rewrite_binary(model: ModelProto) -> ModelProto:
    """Return a copy of ``model`` with its binary layers as counts of bits.

    ``model`` has no functions. A model without such layers, of an older opset than 13, or that
    ONNX's checker refuses, stays as it is.
    """
    if not any(not x.domain and x.version >= _FIRST for x in model.opset_import):
        return model
    try:
        check_model(model)
    except OnnxError:
        # Whoever reads it says so.
        return model
    rewriter = _Rewriter(model)
    rewriter.expand()
    rewriter.count()
    return rewriter.model


class _Rewriter:
    """Replaces nodes of the graph of a copy of ``model``."""

    def __init__(self, model: ModelProto) -> None:
        self.model = ModelProto()
        self.model.CopyFrom(model)
        graph = self.model.graph
        inputs = {x.name for x in graph.input}
        self._constants = _Constants(graph, inputs)
        self._names = set[str]()
        for each in _all_graphs(graph):
            self._names.update(x.name for x in (*each.input, *each.initializer))
            self._names.update(name for node in each.node for name in node.output)

    def expand(self) -> None:
        """Replace BipolarQuant by ONNX's own operators, where its scale is constant."""
        nodes = self._take_nodes()
        for node in nodes:
            quantizes = node.op_type == _BIPOLAR and node.domain in _DOMAINS
            self.model.graph.node.extend(self._expanded(node) if quantizes else [node])

    def _take_nodes(self) -> list[NodeProto]:
        nodes = list(self.model.graph.node)
        del self.model.graph.node[:]
        return nodes

    def _expanded(self, node: NodeProto) -> list[NodeProto]:
        if len(node.input) != 2 or len(node.output) != 1:
            return [node]
        x, scale, output = node.input[0], self._constants.get(node.input[1]), node.output[0]
        if scale is None or scale.dtype not in _EXACT:
            return [node]
        weights = self._constants.get(x)
        if weights is not None:
            if weights.dtype != scale.dtype:
                return [node]
            self._add(np.where(weights >= 0, scale, -scale), output)
            return []
        truth, zero = self._name(output, "sign"), self._add(np.zeros((), scale.dtype))
        sides = self._add(scale), self._add(-scale)
        return [
            helper.make_node("GreaterOrEqual", [x, zero], [truth], truth),
            helper.make_node("Where", [truth, *sides], [output], node.name or f"{output}.bipolar"),
        ]

    def count(self) -> None:
        """Replace the MatMul of each binary layer."""
        inference = Inference(_without_claims(self.model))
        signs: dict[str, str] = {}
        nodes = self._take_nodes()
        for node in nodes:
            if _is_own(node, "Where") and self._is_sign(node):
                signs[node.output[0]] = node.input[0]
            made = [node]
            if _is_own(node, "MatMul") and node.input[0] in signs:
                x = node.input[0]
                found = inference.declaration(x), inference.declaration(signs[x])
                made = list(self._layer(node, signs[x], found)) or [node]
            self.model.graph.node.extend(made)

    def _is_sign(self, node: NodeProto) -> bool:
        """Return whether a Where is 1 where its condition holds, else -1."""
        one, other = (self._constants.get(name) for name in node.input[1:3])
        if one is None or other is None or one.size != 1 or other.size != 1:
            return False
        scalars = max(one.ndim, other.ndim) <= 1 and one.dtype in _EXACT
        return scalars and (one.item(), other.item()) == (1, -1)

    def _layer(
        self, node: NodeProto, x: str, found: tuple[BitTensor | None, BitTensor | None]
    ) -> Iterator[NodeProto]:
        """Yield the nodes that count instead of a MatMul; none if it is not a binary layer.

        ``found``: its activations and ``x``, their condition, as inferred.
        """
        weights = self._constants.get(node.input[1])
        declared, condition = found
        if weights is None or weights.ndim != 2 or not weights.size or not declared:
            return
        if condition is None or not condition.shape:
            # Sides of one axis give one to a condition that has none.
            return
        # The length has to be known: Xor would repeat an axis that MatMul refuses.
        length, dtype = weights.shape[0], weights.dtype
        if declared.dtype != dtype or not declared.shape or declared.shape[-1] != length:
            return
        if length >= _EXACT.get(dtype, 0) or not np.all(np.abs(weights) == 1):
            return
        (output,) = node.output
        bits = self._add(np.ascontiguousarray(weights.T > 0))
        last, before = self._add(np.array([-1])), self._add(np.array([-2]))
        minus, most = (self._add(np.array(x, np.int32)) for x in (-2, length))
        for operator, inputs, word in (
            ("Unsqueeze", [before], "rows"),
            ("Xor", [bits], "differ"),
            ("Cast", [], "ones"),
            ("ReduceSum", [last], "distances"),
            ("Mul", [minus], "twice"),
            ("Add", [most], "sum"),
        ):
            name = self._name(output, word)
            made = helper.make_node(operator, [x, *inputs], [name], name)
            if operator == "Cast":
                made.attribute.append(helper.make_attribute("to", TensorProto.INT32))
            if operator == "ReduceSum":
                made.attribute.append(helper.make_attribute("keepdims", 0))
            yield made
            x = name
        to = helper.np_dtype_to_tensor_dtype(dtype)
        yield helper.make_node("Cast", [x], [output], self._name(output, "product"), to=to)

    def _add(self, array: AnyArray, name: str = "") -> str:
        """Add an initializer; return its name."""
        name = name or self._name("binary", "constant")
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        self._constants.add(name, np.asarray(array))
        return name

    def _name(self, stem: str, word: str) -> str:
        """Return a name that nothing else has."""
        name, number = f"{stem}.{word}", 0
        while name in self._names:
            number += 1
            name = f"{stem}.{word}{number}"
        self._names.add(name)
        return name


def _without_claims(model: ModelProto) -> ModelProto:
    """Return a copy of ``model`` without the shapes that it declares of values, which none checks.

    Those of its own inputs stay, as each run checks them.
    """
    result = ModelProto()
    result.CopyFrom(model)
    for number, graph in enumerate(_all_graphs(result.graph)):
        del graph.value_info[:]
        for info in (*graph.output, *(graph.input if number else ())):
            for axis in info.type.tensor_type.shape.dim:
                axis.Clear()
    return result


def _all_graphs(graph: GraphProto) -> list[GraphProto]:
    """Return ``graph``, then the graphs inside its nodes."""
    found = [graph]
    for each in found:
        found += [inner for node in each.node for inner in subgraphs_of(node)]
    return found


def _is_own(node: NodeProto, operator: str) -> bool:
    return node.op_type == operator and not node.domain


class _Constants:
    """The values of a graph that are the same in each run, read when one is first asked for."""

    def __init__(self, graph: GraphProto, inputs: Iterable[str]) -> None:
        nodes = [node for node in graph.node if _is_own(node, "Constant") and len(node.output) == 1]
        made = [tensor for node in nodes if (tensor := constant_tensor(node)) is not None]
        self._tensors = {tensor.name: tensor for tensor in (*graph.initializer, *made)}
        for name in inputs:
            self._tensors.pop(name, None)
        self._arrays: dict[str, AnyArray] = {}

    def add(self, name: str, array: AnyArray) -> None:
        self._arrays[name] = array

    def get(self, name: str) -> AnyArray | None:
        """Return a constant; None for other values, and for tensors that cannot be read."""
        if name not in self._arrays and name in self._tensors:
            try:
                self._arrays[name] = read_tensor("constant", self._tensors[name])
            except OnnxError:
                return None
        return self._arrays.get(name)
