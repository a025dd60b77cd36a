"""The golden model is onnx's reference: it computes each operator as NumPy does, in every opset."""

import numpy as np
import pytest

from bitlane.onnx.cut import read_graph
from bitlane.onnx.nodes import newest_opset
from support.host.arrays import same
from support.host.onnx_models import golden, model_of, node

BINARY = {
    "And": (np.bitwise_and, "?", 7),
    "Or": (np.bitwise_or, "?", 7),
    "Xor": (np.bitwise_xor, "?", 7),
    "Equal": (np.equal, "i4", 7),
    "BitwiseAnd": (np.bitwise_and, "u2", 18),
    "BitwiseOr": (np.bitwise_or, "i8", 18),
    "BitwiseXor": (np.bitwise_xor, "i1", 18),
}
"""NumPy's function, a type, and the first opset."""


@pytest.mark.parametrize("operator", BINARY)
def test_operators_of_two_inputs_in_every_opset(operator: str) -> None:
    function, kind, first = BINARY[operator]
    a, b = np.array([0, 1, 1, 0]).astype(kind), np.array([[0], [1]]).astype(kind)
    wanted = np.asarray(function(a, b))
    declared, output = {"a": (kind, [4]), "b": (kind, [2, 1])}, {"y": (str(wanted.dtype), [2, 4])}
    for opset in range(first, newest_opset() + 1):
        model = model_of([node(operator, "a b", "y")], declared, output, opset=opset)
        read_graph(model)
        assert same(golden(model, {"a": a, "b": b})[0], wanted), opset


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_in_every_opset(direction: str) -> None:
    a, b = np.full(4, 0x81, np.uint8), np.array([0, 1, 7, 8], np.uint8)
    wanted = {"LEFT": [0x81, 2, 0x80, 0], "RIGHT": [0x81, 0x40, 1, 0]}[direction]
    declared = {"a": ("u1", [4]), "b": ("u1", [4])}
    shift = node("BitShift", "a b", "y", direction=direction)
    for opset in range(11, newest_opset() + 1):
        model = model_of([shift], declared, {"y": ("u1", [4])}, opset=opset)
        read_graph(model)
        got = golden(model, {"a": a, "b": b})[0]
        assert same(got, np.array(wanted, np.uint8)), opset


def test_both_names_of_the_domain_and_any_byte_order() -> None:
    model = model_of([node("BitwiseNot", "a", "y")], {"a": ("u2", [2])}, {"y": ("u2", [2])})
    model.graph.node[0].domain = model.opset_import[0].domain = "ai.onnx"
    got = golden(model, {"a": np.array([1, 2], ">u2")})[0]
    assert same(got, np.array([0xFFFE, 0xFFFD], np.uint16))
