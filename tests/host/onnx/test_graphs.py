"""Graphs of ONNX's operators on a modelled device: what they give, and in how few passes."""

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from bitlane import Device
from bitlane.arrays import Value
from bitlane.onnx import OnnxError, prepare
from support.host.arrays import link_of, random, same
from support.host.onnx_models import code, golden, made_up, model_of, node, parsed, tensor
from support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(10, 150))
def test_any_graph_gives_what_onnxs_reference_gives(seed: int, device: Device) -> None:
    graph, given = made_up(seed)
    wanted = ReferenceEvaluator(graph).run(None, given)
    given = {name: _with_other_bytes(x, seed) for name, x in given.items()}
    prepared = prepare(graph, device)
    says_golden = golden(graph, given)
    got = prepared.run(given)
    assert len(got) == len(wanted) == len(says_golden) == len(graph.graph.output)
    for x, mine, theirs, model_says in zip(
        graph.graph.output, got, wanted, says_golden, strict=True
    ):
        assert same(mine, np.asarray(theirs)), f"seed {seed}: {x.name}\n{graph}"
        assert same(mine, model_says), f"seed {seed}: {x.name}, the golden model"


def _with_other_bytes(x: NDArray[Any], seed: int) -> NDArray[Any]:
    """Return ``x``; True of booleans becomes any byte but 0."""
    if x.dtype != np.bool_:
        return x
    true = np.random.default_rng(seed).choice(np.array([1, 2, 128, 255], np.uint8), x.shape)
    return np.asarray(x.view(np.uint8) * true).view(np.bool_)


def test_operators_fuse_as_arrays_do(device: Device) -> None:
    text = """g (uint32[n,4] a, uint32[n,4] b) => (uint32[n,4] y) <uint32 k = {7}>
    { x = BitwiseXor(a, b) n = BitwiseNot(x) y = BitwiseAnd(n, k) }"""
    a, b = random((8, 4), "u4", 1), random((8, 4), "u4", 2)
    prepared = prepare(parsed(text), device)
    link_of(device).log.clear()
    lines = prepared.explain([a, b]).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["XNOR", "AND", "fused", "unfused"]
    assert lines[-2].split()[1:3] == ["2", "passes"]
    assert lines[-1].split()[1:3] == ["3", "passes"]
    assert not link_of(device).log
    assert same(prepared.run([a, b]).y, ~(a ^ b) & np.uint32(7))


def test_equal_and_its_inverse_are_one_pass(device: Device) -> None:
    text = "g (int16[n,1] a, int16[5] b) => (bool[n,5] y) { e = Equal(a, b) y = Not(e) }"
    a, b = random((3, 1), "i2", 1) % np.int16(2), random(5, "i2", 2) % np.int16(2)
    prepared = prepare(parsed(text, opset=19), device)
    lines = prepared.explain([a, b]).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["COUNT_XOR TEST", "fused", "unfused"]
    assert same(prepared.run([a, b]).y, a != b)


@pytest.mark.parametrize(
    ("operator", "kind", "opset", "pairs", "wanted"),
    [
        # Equal of truth values in every opset, and of floats as IEEE 754 says.
        *(
            ("Equal", "?", opset, [(0, 0), (0, 1), (1, 0), (1, 1)], [True, False, False, True])
            for opset in (7, 11, 13, 19, 28)
        ),
        *(
            (
                "Equal",
                kind,
                28,
                [(0.0, -0.0), (-0.0, -0.0), (np.nan, np.nan), (np.inf, np.inf), (1, 1), (-1, 1)],
                [True, True, False, True, True, False],
            )
            for kind in ("f2", "f4", "f8")
        ),
        # Opset 11 shifts out what exceeds the width.
        *(
            ("BitShift", f"u{n}", 11, [(128, 7), (128, 8 * n), (128, 255)], [1, 0, 0])
            for n in (1, 2, 4, 8)
        ),
    ],
)
def test_pairs(
    operator: str, kind: str, opset: int, pairs: Any, wanted: list[Any], device: Device
) -> None:
    shift = {"direction": "RIGHT"} if operator == "BitShift" else {}
    length = [len(wanted)]
    output = {"y": ("?" if operator == "Equal" else kind, length)}
    nodes = [node(operator, "a b", "y", **shift)]
    graph = model_of(nodes, {"a": (kind, length), "b": (kind, length)}, output, opset=opset)
    a, b = (np.array(column, kind) for column in zip(*pairs, strict=True))
    result = np.array(wanted, output["y"][0])
    assert same(prepare(graph, device).run([a, b])[0], result)
    assert same(golden(graph, {"a": a, "b": b})[0], result)


def test_a_bitcast_takes_no_pass_and_parts_none(device: Device) -> None:
    text = """g (uint32[5] a, uint32[5] b) => (int32[5] y)
    { x = BitwiseXor(a, b) c = BitCast <to = 6>(x) y = BitwiseNot(c) }"""
    a, b = random(5, "u4", 1), random(5, "u4", 2)
    prepared = prepare(parsed(text, opset=28), device)
    explained = prepared.explain([a, b])
    assert "fused    1 pass " in explained
    assert "unfused  2 passes " in explained
    assert not link_of(device).log
    assert same(prepared.run([a, b])[0], ~(a ^ b).view("i4"))


def test_what_no_output_needs_is_not_computed(device: Device) -> None:
    text = "g (uint8[3] a) => (uint8[3] y) { y = BitwiseNot(a) unused = BitwiseXor(a, a) }"
    prepared = prepare(parsed(text), device)
    assert "fused    1 pass " in prepared.explain([np.zeros(3, np.uint8)])


def test_outputs_may_be_inputs_and_initializers(device: Device) -> None:
    text = "g (float[2] a) => (float[2] a, uint32 k) <uint32 k = {7}> {}"
    a = random(2, "f4", 1)
    got = prepare(parsed(text), device).run([a])
    assert same(got.a, a)
    assert same(got.k, np.array(7, np.uint32))


@pytest.mark.parametrize("computed", ["none", "one", "all"])
def test_writing_to_an_output_changes_nothing_else(computed: str, device: Device) -> None:
    text = """g (uint8[2] a)
    => (uint8[2] a, uint8[2] k, uint8[2] x, uint8[2] n, int8[2] c, uint8[2] r)
    <uint8[2] k = {5, 6}, int64[1] whole = {-1}>
    { n = BitwiseNot(a) c = BitCast <to = 3>(n) r = Reshape(n, whole) x = BitwiseXor(r, k) }"""
    a = device.asarray(np.array([1, 2], np.uint8))
    prepared = prepare(parsed(text, opset=28), device)
    wanted = [[1, 2], [5, 6], [251, 251], [254, 253], [-2, -3], [254, 253]]
    for number in range(6):
        arrays = prepared.arrays([a])
        read = {"none": slice(0), "one": slice(number, number + 1), "all": slice(None)}[computed]
        assert [x.tolist() for x in arrays[read]] == wanted[read]
        arrays[number] ^= 1
        others = [x.tolist() for x in arrays if x is not arrays[number]]
        assert others == wanted[:number] + wanted[number + 1 :]
    assert a.tolist() == [1, 2]


def test_values_in_between_are_no_arrays(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each array that waits knows all those before it: time and memory of a chain's square.
    names = ["a", *(f"x{number}" for number in range(1000))]
    nodes = [node("BitwiseXor", f"{x} b", y) for x, y in pairwise(names)]
    declared = {"a": ("u1", [2]), "b": ("u1", [2])}
    prepared = prepare(model_of(nodes, declared, {names[-1]: ("u1", [2])}), device)
    made: list[object] = []
    plain = Value.__init__

    def counted(self: Value, *arguments: Any, **options: Any) -> None:
        made.append(self)
        plain(self, *arguments, **options)

    monkeypatch.setattr(Value, "__init__", counted)
    a, b = random(2, "u1", 1), random(2, "u1", 2)
    assert same(prepared.run([a, b])[0], a)
    assert len(made) == 3


def test_an_initializer_that_is_an_input_may_be_given(device: Device) -> None:
    seven = tensor("k", np.array(7, np.uint32))
    inputs = {"k": ("u4", []), "a": ("u4", [2])}
    graph = model_of([node("BitwiseAnd", "a k", "y")], inputs, {"y": ("u4", [2])}, [seven])
    a = np.array([9, 15], np.uint32)
    prepared = prepare(graph, device)
    assert prepared.run([a]).y.tolist() == [1, 7]
    assert prepared.run({"a": a, "k": np.uint32(8)}).y.tolist() == [8, 8]
    assert prepared.run([a]).y.tolist() == [1, 7]


BOOLEANS = """g (bool[25] b, uint8[25] u) => (bool[25] y) {
    cast = BitCast <to = 9>(u)
    not_cast = Not(cast)
    cast_again = BitCast <to = 2>(not_cast)
    xor_cast = Xor(cast, k)
    equal_cast = Equal(cast, b)
}"""


@pytest.mark.parametrize("on_device", [False, True])
def test_any_byte_is_true_but_0_in_casts_and_in_initializers(
    device: Device, on_device: bool
) -> None:
    # ONNX does not define booleans of other bytes than 0 and 1; random graphs have them as inputs.
    numbers = np.repeat(np.array([0, 1, 2, 128, 255], np.uint8), 5)
    b, k = numbers.reshape(5, 5).T.ravel().view(bool), numbers[:25:2]
    truth, other = numbers != 0, b.view(np.uint8) != 0
    wanted = {
        "b": other,
        "k": np.resize(k, 25) != 0,
        "cast": truth,
        "not_cast": ~truth,
        "cast_again": (~truth).view(np.uint8),
        "xor_cast": truth ^ (np.resize(k, 25) != 0),
        "equal_cast": truth == other,
    }
    outputs = {name: (str(x.dtype), [25]) for name, x in wanted.items()}
    inputs = {"b": ("?", [25]), "u": ("u1", [25])}
    nodes = parsed(BOOLEANS).graph.node
    # An initializer's bytes are in the file as they are.
    constant = onnx.TensorProto(
        name="k", dims=[25], data_type=code("?"), raw_data=np.resize(k, 25).tobytes()
    )
    graph = model_of(nodes, inputs, outputs, [constant])
    prepared = prepare(graph, device)
    given = {"b": b, "u": numbers}
    says_golden = golden(graph, given)
    sent = {name: device.asarray(x) if on_device else x for name, x in given.items()}
    for (name, expected), got, says in zip(
        wanted.items(), prepared.run(sent), says_golden, strict=True
    ):
        assert same(got, expected), name
        assert same(says, expected), f"{name}, the golden model"


def test_axes_may_be_any_length_and_none(device: Device) -> None:
    text = "g (bool[n,?] a, bool[1,m] b) => (bool[n,m] y) { y = Xor(a, b) }"
    prepared = prepare(parsed(text), device)
    for rows, columns in ((3, 2), (1, 7), (0, 4), (2, 0)):
        a, b = random((rows, columns), "u1") % 2 == 1, random((1, columns), "u1", 2) % 2 == 1
        assert same(prepared.run([a, b]).y, a ^ b)


def test_other_layouts_and_byte_orders_are_inputs_too(device: Device) -> None:
    text = "g (uint16[2,3] a) => (uint16[2,3] y) { y = BitwiseNot(a) }"
    prepared = prepare(parsed(text), device)
    a = random((6, 4), "u2")[::-2, 1:3].T
    for given in (a, a.astype(">u2"), device.asarray(a)):
        assert same(prepared.run([given]).y, ~a)


# --- functions: each call gets the attributes that the function gives by default ----------------


A = random((2, 3), "i4", 1)

PICK = """<domain: "own", opset_import: ["": 18]>
Pick <at: int = 1> (a, which) => (y) { y = Gather <axis: int = @at> (a, which) }"""

THROUGH = """<domain: "own", opset_import: ["": 18, "own": 1]>
Through <to> (a, which) => (y) { x = own.Pick <at: int = @to> (a, which) y = BitwiseNot(x) }"""


def called(call: str, *functions: str) -> ModelProto:
    """Return the model of nodes that compute y of a and b, and of ``functions``."""
    graph = f"g (int32[2,3] a, bool c) => (int32[n,m] y) <int64[2] k = {{1, 0}}> {{ {call} }}"
    return parsed(graph, *functions)


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
    assert same(prepare(called(call, PICK, THROUGH), device).run([A, np.array(True)])[0], wanted)


@pytest.mark.parametrize("condition", [True, False])
def test_branches_call_functions_too(condition: bool, device: Device) -> None:
    call = """y = If (c) <then_branch = t () => (int32[2,2] p) { p = own.Pick(a, k) },
        else_branch = e () => (int32[2,3] q) { q = own.Through <to = 0> (a, k) }>"""
    prepared = prepare(called(call, PICK, THROUGH), device, rest="reference")
    wanted = A[:, [1, 0]] if condition else ~A[[1, 0]]
    assert same(prepared.run([A, np.array(condition)])[0], wanted)


def test_functions_that_cannot_be_inlined_are_named(device: Device) -> None:
    newer = PICK.replace("18", "19")
    with pytest.raises(OnnxError, match=r"^functions 'own\.Pick': onnx\.inliner: .*opset"):
        prepare(called("y = own.Pick(a, k)", newer), device)


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
    model = called(call, OVERLOAD, *others)
    assert same(prepare(model, device).run([A, np.array(True)])[0], A[:, [1, 0]])


def test_overloads_that_call_each_other_are_refused(device: Device) -> None:
    """The inliner would inline the inner one before its call has the defaults."""
    caller = """<domain: "own", overload: "a", opset_import: ["": 18, "own": 1]>
    F (a, which) => (y) { y = own.F:b(a, which) }"""
    with pytest.raises(OnnxError, match=r"^functions 'own\.F': overloads call each other; exp"):
        prepare(called("y = own.F:a(a, k)", OVERLOAD, caller), device)
