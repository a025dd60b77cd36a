"""Functions of a model: each call gets the attributes that the function gives by default."""

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

from bitlane import Device
from bitlane.onnx import OnnxError, prepare
from support.host.arrays import random, same

A = random((2, 3), "i4", 1)

PICK = """<domain: "own", opset_import: ["": 18]>
Pick <at: int = 1> (a, which) => (y) { y = Gather <axis: int = @at> (a, which) }"""

THROUGH = """<domain: "own", opset_import: ["": 18, "own": 1]>
Through <to> (a, which) => (y) { x = own.Pick <at: int = @to> (a, which) y = BitwiseNot(x) }"""


def parsed(call: str, *functions: str) -> ModelProto:
    """Return the model of nodes that compute y of a and b, and of ``functions``."""
    head = '<ir_version: 10, opset_import: ["": 18, "own": 1]>'
    graph = f"g (int32[2,3] a, bool c) => (int32[n,m] y) <int64[2] k = {{1, 0}}> {{ {call} }}"
    return onnx.parser.parse_model(" ".join([head, graph, *functions]))


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("y = own.Pick(a, k)", A[:, [1, 0]]),
        ("y = own.Pick <at = 0> (a, k)", A[[1, 0]]),
        # An attribute of a call in a function, which may be left out where that is called.
        ("y = own.Through(a, k)", ~A[:, [1, 0]]),
        ("y = own.Through <to = 0> (a, k)", ~A[[1, 0]]),
        ("x = own.Through(a, k) y = own.Pick <at = 0> (x, k)", ~A[[1, 0]][:, [1, 0]]),
    ],
)
def test_attributes_that_a_call_leaves_out_have_their_defaults(
    call: str, wanted: np.ndarray, device: Device
) -> None:
    assert same(prepare(parsed(call, PICK, THROUGH), device).run([A, np.array(True)])[0], wanted)


@pytest.mark.parametrize("condition", [True, False])
def test_branches_call_functions_too(condition: bool, device: Device) -> None:
    call = """y = If (c) <then_branch = t () => (int32[2,2] p) { p = own.Pick(a, k) },
        else_branch = e () => (int32[2,3] q) { q = own.Through <to = 0> (a, k) }>"""
    prepared = prepare(parsed(call, PICK, THROUGH), device, rest="reference")
    wanted = A[:, [1, 0]] if condition else ~A[[1, 0]]
    assert same(prepared.run([A, np.array(condition)])[0], wanted)


def test_functions_that_cannot_be_inlined_are_named(device: Device) -> None:
    newer = PICK.replace("18", "19")
    with pytest.raises(OnnxError, match=r"^functions 'own\.Pick': onnx\.inliner: .*opset"):
        prepare(parsed("y = own.Pick(a, k)", newer), device)


OVERLOAD = """<domain: "own", overload: "b", opset_import: ["": 18]>
F <at: int = 1> (a, which) => (y) { y = Gather <axis: int = @at> (a, which) }"""


@pytest.mark.parametrize("call", ["y = own.Z(a, k)", "x = own.F:c(a) y = own.Z(x, k)"])
def test_an_overload_that_a_function_calls_has_its_defaults(call: str, device: Device) -> None:
    others = (
        """<domain: "own", overload: "c", opset_import: ["": 18]>
        F (a) => (y) { y = Identity(a) }""",
        """<domain: "own", opset_import: ["": 18, "own": 1]>
        Z (a, which) => (y) { y = own.F:b(a, which) }""",
    )
    model = parsed(call, OVERLOAD, *others)
    assert same(prepare(model, device).run([A, np.array(True)])[0], A[:, [1, 0]])


def test_overloads_that_call_each_other_are_refused(device: Device) -> None:
    """The inliner would inline the inner one before its call has the defaults."""
    caller = """<domain: "own", overload: "a", opset_import: ["": 18, "own": 1]>
    F (a, which) => (y) { y = own.F:b(a, which) }"""
    with pytest.raises(OnnxError, match=r"^functions 'own\.F': overloads call each other; exp"):
        prepare(parsed("y = own.F:a(a, k)", OVERLOAD, caller), device)
