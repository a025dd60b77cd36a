"""Models with nodes that a device lacks: where they are computed, and what is refused by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto, helper

import bitlane.onnx.rest
from bitlane import Device
from bitlane.errors import SettingError, ShapeError
from bitlane.onnx import OnnxError, OnnxLackingError, PreparedGraph, is_compatible, prepare
from bitlane.onnx.model import DeviceGroup, RestGroup
from support.host.arrays import link_of, model, random, same, uploads
from support.host.onnx_models import mixed, model_of, node, parsed, tensor
from support.host.refusals import refused
from support.seeds import seeds, slow

A, B = random((4,), "i4", 1), random((4,), "i4", 2)


def kinds(prepared: PreparedGraph) -> list[tuple[str, ...]]:
    """Return the labels of each group's nodes, behind where it is computed."""
    return [
        ("device", *(each.label for each in group.nodes))
        if isinstance(group, DeviceGroup)
        else ("rest", *(reason.split(": ")[0] for reason in group.reasons))
        for group in prepared.graph.groups
    ]


THREE = """
g (int32[n] a, int32[n] b) => (int32[n] y, bool[n] e) <int32 k = {7}> {
    x = BitwiseXor(a, b)
    s = Add(x, k)
    z = BitwiseNot(s)
    t = Mul(z, k)
    y = BitwiseAnd(t, x)
    u = Neg(s)
    e = Equal(u, z)
}
"""


def expected_of_three(a: Any, b: Any) -> tuple[Any, Any]:
    x = a ^ b
    s = x + np.int32(7)
    return ~s * np.int32(7) & x, -s == ~s


def test_foreign_nodes_are_computed_where_the_user_says(device: Device) -> None:
    prepared = prepare(parsed(THREE), device, rest="reference")
    assert kinds(prepared) == [
        ("device", "node 0 (BitwiseXor)"),
        ("rest", "node 1 (Add)", "node 5 (Neg)"),
        ("device", "node 2 (BitwiseNot)", "node 6 (Equal)"),
        ("rest", "node 3 (Mul)"),
        ("device", "node 4 (BitwiseAnd)"),
    ]
    for a, b in ((A, B), (random((9,), "i4", 3), random((9,), "i4", 4))):
        y, e = expected_of_three(a, b)
        got = prepared.run({"a": a, "b": b})
        assert same(got.y, y)
        assert same(got.e, e)
        arrays = prepared.arrays([device.asarray(a), b])
        assert [same(x.get(), z) for x, z in zip(arrays, (y, e), strict=True)] == [True, True]


def test_without_a_rest_the_message_names_the_nodes_and_the_option(device: Device) -> None:
    link_of(device).traffic.clear()
    for refuse in (lambda: prepare(parsed(THREE), device), lambda: prepare(parsed(THREE), "sim")):
        with pytest.raises(OnnxLackingError) as caught:
            refuse()
        assert str(caught.value) == (
            "node 1 (Add): an operator that bitlane does not have; nor does the device have node 3"
            " (Mul), node 5 (Neg); rest='onnxruntime' or 'reference' (--rest) computes such nodes"
            " off the device"
        )
    assert not is_compatible(parsed(THREE))
    assert is_compatible(parsed(THREE), rest="reference")
    assert link_of(device).traffic == []


def test_each_group_is_explained(device: Device) -> None:
    prepared = prepare(parsed(THREE), device, rest="reference")
    link_of(device).log.clear()
    lines = prepared.explain([A, B]).splitlines()
    assert not link_of(device).log
    assert lines[:3] == [
        "group 1, device: node 0 (BitwiseXor)",
        "  reads 'a', 'b' (32 bytes), gives 'x' (16 bytes)",
        "pass     elements      commands  runs  bytes read  bytes written  cycles",
    ]
    assert "group 2, reference: 2 nodes" in lines
    assert "  node 5 (Neg): an operator that bitlane does not have" in lines
    assert lines[-1].startswith("rule: a group that only moves elements is not worth a transfer")


def test_shapes_that_the_values_decide_are_explained_as_such(device: Device) -> None:
    text = """g (int32[n] a) => (int32[1,m] y)
    { p = NonZero(a) q = Cast<to=6>(p) y = BitwiseNot(q) }"""
    prepared = prepare(parsed(text), device, rest="reference")
    assert "  shapes are known only when the model runs" in prepared.explain([A]).splitlines()
    assert same(prepared.run([np.array([0, 5, 6], np.int32)])[0], ~np.array([[1, 2]], np.int32))


def test_groups_that_only_move_elements_are_not_worth_it(device: Device) -> None:
    text = """g (int32[2,3] a) => (int32[3,2] y, int32[2,3] z)
    { s = Neg(a) t = Transpose(s) y = Abs(t) z = BitwiseNot(a) }"""
    prepared = prepare(parsed(text), device, rest="reference")
    assert kinds(prepared) == [
        ("device", "node 3 (BitwiseNot)"),
        ("rest", "node 0 (Neg)", "node 1 (Transpose)", "node 2 (Abs)"),
    ]
    assert "not worth a transfer" in prepared.graph.groups[1].reasons[1]
    a = random((2, 3), "i4", 5)
    got = prepared.run([a])
    assert same(got.y, np.abs(-a.T))
    assert same(got.z, ~a)
    alone = prepare(parsed("g (int32[2,3] a) => (int32[3,2] y) { y = Transpose(a) }"), device)
    assert same(alone.run([a])[0], a.T)
    moved = prepare(
        parsed("g (int32[2,3] a) => (int32[3,2] y) { y = Transpose(a) }"), device, rest="reference"
    )
    assert kinds(moved) == [("rest", "node 0 (Transpose)")]
    assert same(moved.run([a])[0], a.T)


def test_weights_stay_on_the_device_between_runs(device: Device) -> None:
    a, weights = random((16, 16), "u4", 8), random((16, 16), "u4", 7)
    nodes = [node("Max", "a a", "m"), node("BitwiseXor", "m w", "y")]
    square = ("u4", [16, 16])
    graph = model_of(nodes, {"a": square}, {"y": square}, [tensor("w", weights)], opset=18)
    uploads(device)
    prepared = prepare(graph, device, rest="reference")
    assert uploads(device) == [a.nbytes]
    for _ in range(2):
        assert same(prepared.run([a])[0], a ^ weights)
        assert uploads(device) == [a.nbytes]


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_any_graph_gives_what_the_reference_gives(seed: int, device: Device) -> None:
    graph, given = mixed(seed)
    prepared = prepare(graph, device, rest="reference")
    wanted = onnx.reference.ReferenceEvaluator(graph).run(None, given)
    for x, got, expected in zip(graph.graph.output, prepared.run(given), wanted, strict=True):
        assert same(got, np.asarray(expected)), f"seed {seed}: {x.name}"
    prepared.explain(given)


# --- control flow, functions, values of other kinds -----------------------------------------------

TWISTED = """<domain: "own", opset_import: ["": 18]>
    Twisted (a, b) => (y) { x = BitwiseXor(a, b) s = Add(x, b) y = BitwiseNot(s) }"""
BRANCH = """g (bool c, int32[n] a, int32[n] b) => (int32[n] y) {
    x = BitwiseXor(a, b)
    t = If (c) <
        then_branch = one () => (int32[n] p) { q = Neg(x) p = Add(q, b) },
        else_branch = two () => (int32[n] r) { r = Identity(a) }
    >
    y = BitwiseNot(t)
}"""
LOOP = """g (int64 n, int32[4] a) => (int32[4] y) {
    k = BitwiseNot(a)
    none = Constant <value = bool {1}>()
    s = Loop (n, none, k) <
        body = step (int64 i, bool go, int32[4] v) => (bool on, int32[4] w)
            { on = Identity(go) w = Add(v, a) }
    >
    y = BitwiseNot(s)
}"""
SEQUENCE = """g (int32[n] a, int32[n] b) => (int32[m] y) <int64 at = {0}> {
    s = SequenceConstruct(a, b)
    t = SequenceAt(s, at)
    u = BitwiseNot(t)
    w = SequenceInsert(s, u)
    y = ConcatFromSequence <axis = 0>(w)
}"""
CALL = "g (int32[n] a, int32[n] b) => (int32[n] y) { y = own.Twisted(a, b) }"
UNIQUE = """g (int32[4] a) => (int64[m] y)
    { n = BitwiseNot(a) u, , v = Unique(n) y = BitwiseNot(v) }"""
TRUTHS = """g (bool[n] a, bool[n] b) => (int32[n] y) { x = Or(a, b) s = Cast <to = 6>(a)
    t = Cast <to = 6>(x) u = Neg(s) y = Add(t, u) }"""
ODD = np.array([0, 1, 2, 255], np.uint8).view(bool)
ROUND = ["device", "rest", "device"]


@pytest.mark.parametrize(
    ("text", "functions", "given", "wanted", "places"),
    [
        (BRANCH, (), [np.array(True), A, B], ~(-(A ^ B) + B), ROUND),
        (BRANCH, (), [np.array(False), A, B], ~A, ROUND),
        (LOOP, (), [np.array(3), A], ~(~A + 3 * A), ROUND),
        (CALL, (TWISTED,), [A, B], ~((A ^ B) + B), ROUND),
        (CALL, (TWISTED.replace("Add", "BitwiseOr"),), [A, B], ~((A ^ B) | B), ["device"]),
        (SEQUENCE, (), [A, B], np.concatenate([A, B, ~A]), ["rest", "device", "rest"]),
        (UNIQUE, (), [np.int32([5, 7, 5, 6])], np.int64([-3, -1, -3, -2]), ROUND),
        (TRUTHS, (), [ODD, ~(ODD != 0)], np.int32([1, 0, 0, 0]), None),
    ],
)
def test_what_the_device_lacks_is_the_rests(
    text: str,
    functions: tuple[str, ...],
    given: list[Any],
    wanted: Any,
    places: list[str] | None,
    device: Device,
) -> None:
    prepared = prepare(parsed(text, *functions), device, rest="reference")
    assert same(prepared.run(given)[0], wanted)
    if places is not None:
        assert [kind for kind, *_ in kinds(prepared)] == places


def test_a_default_of_an_input_reaches_both_backends(device: Device) -> None:
    nodes = [node("Add", "a k", "s"), node("BitwiseXor", "s k", "y")]
    declared = {"k": ("i4", [1]), "a": ("i4", [4])}
    seven = tensor("k", np.array([7], np.int32))
    graph = model_of(nodes, declared, {"y": ("i4", [4])}, [seven], opset=18)
    prepared = prepare(graph, device, rest="reference")
    for k in (7, 8):
        given = {"a": A} if k == 7 else {"a": A, "k": np.array([k], np.int32)}
        assert same(prepared.run(given)[0], (A + np.int32(k)) ^ np.int32(k))


def test_an_output_that_no_group_computes_is_a_copy(device: Device) -> None:
    graph = parsed("g (int32[n] a) => (int32[n] a, int32[n] y) { x = Neg(a) y = BitwiseNot(x) }")
    prepared = prepare(graph, device, rest="reference")
    a = A.copy()
    got = prepared.run([a])
    got.a[0] ^= 1
    assert same(a, A)
    sent = device.asarray(a)
    arrays = prepared.arrays([sent])
    arrays[0] ^= 1
    assert same(sent.get(), A)


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let the backend return its first input for each output; return the inputs that it gets."""
    inputs: list[Any] = []

    def load(content: bytes, outputs: Sequence[str]) -> Any:
        def compute(given: Mapping[str, Any]) -> list[Any]:
            inputs.extend(given.values())
            return [next(iter(given.values()))] * len(outputs)

        return compute

    monkeypatch.setitem(bitlane.onnx.rest._BACKENDS, "reference", load)
    return inputs


def test_results_of_the_rest_share_no_memory(device: Device, echo: list[Any]) -> None:
    text = """g (int32[4] a) => (int32[4] y, int32[4] z, int32[4] n)
    { n = BitwiseNot(a) y = Abs(a) z = Abs(a) }"""
    prepared = prepare(parsed(text), device, rest="reference")
    a = A.copy()
    got = prepared.run([a])
    got.y[...] = 0
    assert same(a, A)
    assert same(got.z, A)
    assert len(echo) == 1


@pytest.mark.parametrize("rest", ["reference", slow("onnxruntime")])
def test_a_result_that_is_changed_changes_no_later_run(rest: str, device: Device) -> None:
    graph = parsed(
        "moves (int32[n] a) => (int32[1,2] y) <int32[2] k = {5, 6}, int64[2] s = {1, 2}>"
        " { y = Reshape(k, s) }"
    )
    prepared = prepare(graph, device, rest=rest)
    for _ in range(2):
        y = prepared.run([A]).y
        assert y.tolist() == [[5, 6]]
        y[...] = 7


def test_the_rest_gets_booleans_of_0_and_1(device: Device, echo: list[Any]) -> None:
    graph = parsed("g (bool[4] a) => (bool[1,4] y) { y = Flatten <axis = 0>(a) }")
    prepared = prepare(graph, device, rest="reference")
    with pytest.raises(ShapeError):
        prepared.run([np.array([0, 1, 2, 255], np.uint8).view(bool)])
    (sent,) = echo
    assert sent.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_a_constant_of_another_type_is_the_rests(device: Device) -> None:
    words = helper.make_tensor("k", TensorProto.STRING, [4], [b"a", b"b", b"a", b"c"])
    nodes = [node("Equal", "k k", "e"), node("And", "e b", "y")]
    graph = model_of(nodes, {"b": ("?", [4])}, {"y": ("?", [4])}, [words], opset=19)
    prepared = prepare(graph, device, rest="reference")
    assert [kind for kind, *_ in kinds(prepared)] == ["rest", "device"]
    assert prepared.run([np.array([1, 0, 1, 0], bool)])[0].tolist() == [True, False, True, False]


# --- what is refused ------------------------------------------------------------------------------


def external() -> TensorProto:
    hidden = TensorProto(name="h", data_type=TensorProto.INT32, dims=[4])
    hidden.data_location = TensorProto.EXTERNAL
    hidden.external_data.add(key="location", value="../../etc/passwd")
    return hidden


def hidden_tensors() -> dict[str, Any]:
    """Return, by place, changes of a model that hide a tensor of another file there."""
    constant = helper.make_node("Constant", [], ["c"], value=external())
    opsets = [helper.make_opsetid("", 18)]
    info = helper.make_tensor_value_info("h", 6, [4])
    inner = helper.make_graph([], "g", [], [info], [external()])
    branch = helper.make_node("If", ["c"], ["r"], then_branch=inner, else_branch=inner)
    indices = tensor("i", np.zeros(1, np.int64))
    sparse = helper.make_sparse_tensor(external(), indices, [4])
    function = helper.make_function("own", "F", [], ["c"], [constant], opsets)
    return {
        "constant": lambda x: x.graph.node.append(constant),
        "branch": lambda x: x.graph.node.append(branch),
        "sparse tensor": lambda x: x.graph.node.append(
            helper.make_node("Constant", [], ["c"], sparse_value=sparse)
        ),
        "function": lambda x: x.functions.append(function),
    }


@pytest.mark.parametrize("place", hidden_tensors())
@pytest.mark.parametrize("rest", [None, "reference"])
def test_tensors_in_other_files_are_refused_wherever_they_are(
    place: str, rest: Any, device: Device
) -> None:
    graph = parsed(THREE)
    hidden_tensors()[place](graph)
    with refused(device, OnnxError, "lies in another file; expected it in the model"):
        prepare(graph, device, rest=rest)


UNKNOWN = "g (int32[n] a) => (int32[n] y) { x = own.Odd(a) y = BitwiseNot(x) }"
# x lies between two parts of the rest, as one of them waits for the device.
BETWEEN = """g (int32[n] a) => (int32[n] y)
    { x = own.Odd(a) p = Neg(a) z = BitwiseNot(p) q = Abs(z) y = own.Even(x, q) }"""
ADDED = "g (int32[n] a, int32[m] b) => (int32[k] y) { x = Add(a, b) y = BitwiseNot(x) }"
INVERTED = "g (int32[n] a, int32[m] b) => (int32[n] y) { x = BitwiseNot(a) y = Add(x, b) }"
LACKING = "an operator that bitlane does not"
STRINGS = 'g (bool[1] b) => (bool[1] y) <string[1] k = {"a"}> { e = Equal(k, k) y = And(e, b) }'


@pytest.mark.parametrize(
    ("model", "rest", "inputs", "error", "words"),
    [
        *(
            (parsed(THREE), rest, None, SettingError, "rest: .*; expected None, 'onnxruntime' or ")
            for rest in ("tvm", "", "Reference", 1, True, ("reference",))
        ),
        (parsed(BRANCH), None, None, OnnxLackingError, rf"node 1 \(If\): {LACKING}"),
        (parsed(CALL, TWISTED), None, None, OnnxLackingError, rf"\(Add\): {LACKING} have"),
        (parsed(STRINGS, opset=19), None, None, OnnxLackingError, "'k': data type STRING"),
        (parsed(UNKNOWN), None, None, OnnxError, rf"node 0 \(own.Odd\): {LACKING}"),
        (parsed(UNKNOWN), "reference", None, OnnxError, "rest 'reference': .*Odd"),
        (parsed(BETWEEN), "reference", None, OnnxError, "value 'x': ONNX infers no type, and"),
        (parsed(ADDED), "reference", [A, A[:3]], OnnxError, "rest 'reference': .*Add"),
    ],
)  # fmt: skip
def test_what_the_rest_cannot_do_is_named(
    model: ModelProto, rest: Any, inputs: Any, error: type[Exception], words: str, device: Device
) -> None:
    with refused(device, error, words, sent=inputs is not None) as caught:
        prepared = prepare(model, device, rest=rest)
        prepared.run(inputs)
    assert str(caught.value).isprintable()


def test_shapes_of_the_rest_are_checked_too(device: Device) -> None:
    prepared = prepare(parsed(INVERTED), device, rest="reference")
    with pytest.raises(ShapeError, match=r"'y': shape \(4,\); expected int32 of shape \(n,\)"):
        prepared.run([A[:1], B])


def test_a_rest_that_gives_another_type_is_refused(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(content: bytes, outputs: Sequence[str]) -> Any:
        def compute(inputs: Mapping[str, Any]) -> list[Any]:
            return [np.zeros(4, np.int64) for _ in outputs]

        return compute

    monkeypatch.setitem(bitlane.onnx.rest._BACKENDS, "reference", load)
    prepared = prepare(parsed(THREE), device, rest="reference")
    with pytest.raises(OnnxError, match="rest 'reference': value 's': int64; expected int32, as"):
        prepared.run([A, B])


def test_no_device_is_opened_for_a_model_that_the_rest_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(bitlane.onnx.backend, "open_device", opened.append)
    with pytest.raises(OnnxError, match=r"rest 'reference': .*Odd"):
        prepare(
            parsed("g (int32[n] a) => (int32[n] y) { y = own.Odd(a) }"), "sim", rest="reference"
        )
    assert opened == []


def test_the_rest_is_a_model_of_its_own() -> None:
    prepared = prepare(parsed(THREE), model(), rest="reference")
    parts = [group for group in prepared.graph.groups if isinstance(group, RestGroup)]
    for group in parts:
        onnx.checker.check_model(ModelProto.FromString(group.content))
    assert [(group.inputs, group.outputs) for group in parts] == [
        (("x",), ("s", "u")),
        (("z",), ("t",)),
    ]
