"""Graphs of ONNX's operators on a modelled device: what they give, and in how few passes."""

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from bitlane import Device
from bitlane.arrays.value import Value
from bitlane.errors import DataTypeError, OtherDeviceError, ShapeError
from bitlane.onnx import OnnxError, prepare
from support.host.arrays import link_of, model, random, same
from support.host.onnx_models import code, golden, made_up, model_of, node, tensor
from support.seeds import seeds

XOR_NOT_AND = [
    node("BitwiseXor", "a b", "x"),
    node("BitwiseNot", "x", "n"),
    node("BitwiseAnd", "n k", "y"),
]
SEVEN = tensor("k", np.array(7, np.uint32))


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
    axes = ["n", 4]
    graph = model_of(
        XOR_NOT_AND, {"a": ("u4", axes), "b": ("u4", axes)}, {"y": ("u4", axes)}, [SEVEN]
    )
    a, b = random((8, 4), "u4", 1), random((8, 4), "u4", 2)
    prepared = prepare(graph, device)
    link_of(device).log.clear()
    lines = prepared.explain([a, b]).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["XNOR", "AND", "fused", "unfused"]
    assert lines[-2].split()[1:3] == ["2", "passes"]
    assert lines[-1].split()[1:3] == ["3", "passes"]
    assert not link_of(device).log
    assert same(prepared.run([a, b]).y, ~(a ^ b) & np.uint32(7))


def test_equal_and_its_inverse_are_one_pass(device: Device) -> None:
    nodes = [node("Equal", "a b", "e"), node("Not", "e", "y")]
    graph = model_of(nodes, {"a": ("i2", ["n", 1]), "b": ("i2", [5])}, {"y": ("?", ["n", 5])})
    a, b = random((3, 1), "i2", 1) % np.int16(2), random(5, "i2", 2) % np.int16(2)
    prepared = prepare(graph, device)
    lines = prepared.explain([a, b]).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["COUNT_XOR TEST", "fused", "unfused"]
    assert same(prepared.run([a, b]).y, a != b)


@pytest.mark.parametrize("opset", [7, 11, 13, 19, 28])
def test_equal_of_truth_values_in_every_opset(device: Device, opset: int) -> None:
    declared = {"a": ("?", [4]), "b": ("?", [4])}
    graph = model_of([node("Equal", "a b", "y")], declared, {"y": ("?", [4])}, opset=opset)
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert same(prepare(graph, device).run([a, b]).y, a == b)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_floats_are_equal_as_onnxs_reference_says(device: Device, kind: str) -> None:
    declared = {"a": (kind, [6]), "b": (kind, [6])}
    graph = model_of([node("Equal", "a b", "y")], declared, {"y": ("?", [6])})
    a = np.array([0.0, -0.0, np.nan, np.inf, 1, -1], kind)
    b = np.array([-0.0, -0.0, np.nan, np.inf, 1, 1], kind)
    prepared = prepare(graph, device)
    (wanted,) = ReferenceEvaluator(graph).run(None, {"a": a, "b": b})
    assert same(prepared.run([a, b]).y, np.asarray(wanted))
    assert same(golden(graph, {"a": a, "b": b})[0], np.asarray(wanted))


def test_a_bitcast_takes_no_pass_and_parts_none(device: Device) -> None:
    xor, inverted = node("BitwiseXor", "a b", "x"), node("BitwiseNot", "c", "y")
    nodes = [xor, node("BitCast", "x", "c", to=6), inverted]
    graph = model_of(nodes, {"a": ("u4", [5]), "b": ("u4", [5])}, {"y": ("i4", [5])})
    a, b = random(5, "u4", 1), random(5, "u4", 2)
    prepared = prepare(graph, device)
    explained = prepared.explain([a, b])
    assert "fused    1 pass " in explained
    assert "unfused  2 passes " in explained
    assert not link_of(device).log
    assert same(prepared.run([a, b])[0], ~(a ^ b).view("i4"))


def test_what_no_output_needs_is_not_computed(device: Device) -> None:
    nodes = [node("BitwiseNot", "a", "y"), node("BitwiseXor", "a a", "unused")]
    prepared = prepare(model_of(nodes, {"a": ("u1", [3])}, {"y": ("u1", [3])}), device)
    assert "fused    1 pass " in prepared.explain([np.zeros(3, np.uint8)])


def test_outputs_may_be_inputs_and_initializers(device: Device) -> None:
    graph = model_of([], {"a": ("f4", [2])}, {"a": ("f4", [2]), "k": ("u4", [])}, [SEVEN])
    a = random(2, "f4", 1)
    got = prepare(graph, device).run([a])
    assert same(got.a, a)
    assert same(got.k, np.array(7, np.uint32))


def test_writing_to_an_output_changes_nothing_else(device: Device) -> None:
    nodes = [node("BitwiseNot", "a", "n"), node("BitCast", "n", "c", to=3)]
    inputs, constants = {"a": ("u1", [2])}, [tensor("k", np.array([5, 6], np.uint8))]
    outputs = {"a": ("u1", [2]), "k": ("u1", [2]), "n": ("u1", [2]), "c": ("i1", [2])}
    a = device.asarray(np.array([1, 2], np.uint8))
    prepared = prepare(model_of(nodes, inputs, outputs, constants), device)
    wanted = [[1, 2], [5, 6], [254, 253], [-2, -3]]
    for number in range(4):
        arrays = prepared.arrays([a])
        assert [x.tolist() for x in arrays] == wanted
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


def test_arrays_on_another_device_are_refused(device: Device) -> None:
    declared = {"a": ("u4", [5]), "b": ("u4", [5])}
    prepared = prepare(model_of(XOR_NOT_AND, declared, {"y": ("u4", [5])}, [SEVEN]), device)
    a, b = random(5, "u4", 1), random(5, "u4", 2)
    with model() as other:
        given = {"a": device.asarray(a), "b": other.asarray(b)}
        for use in (prepared.run, prepared.arrays, prepared.explain):
            with pytest.raises(OtherDeviceError, match=r"input 'b': an array on .*; expected one"):
                use(given)


@pytest.mark.parametrize("given", [None, 3])
def test_inputs_that_are_no_list_are_refused(given: Any, device: Device) -> None:
    prepared = prepare(model_of([], {"a": ("u4", [5])}, {"a": ("u4", [5])}), device)
    with pytest.raises(OnnxError, match=f"^inputs: {given}; expected a list of arrays, or arrays"):
        prepared.run(given)


def test_an_initializer_that_is_an_input_may_be_given(device: Device) -> None:
    graph = model_of(
        [node("BitwiseAnd", "a k", "y")],
        {"k": ("u4", []), "a": ("u4", [2])},
        {"y": ("u4", [2])},
        [SEVEN],
    )
    a = np.array([9, 15], np.uint32)
    prepared = prepare(graph, device)
    assert prepared.run([a]).y.tolist() == [1, 7]
    assert prepared.run({"a": a, "k": np.uint32(8)}).y.tolist() == [8, 8]
    assert prepared.run([a]).y.tolist() == [1, 7]


BOOLEANS = [
    node("Not", "a", "not"),
    node("And", "a b", "and"),
    node("Or", "a b", "or"),
    node("Xor", "a b", "xor"),
    node("Equal", "a b", "equal"),
    node("BitCast", "a", "bytes", to=2),
    node("BitCast", "u", "cast", to=9),
    node("Not", "cast", "not_cast"),
    node("BitCast", "not_cast", "cast_again", to=2),
    node("Xor", "cast k", "xor_cast"),
    node("Equal", "cast b", "equal_cast"),
]


@pytest.mark.parametrize("on_device", [False, True])
def test_any_byte_of_a_boolean_but_0_is_true(device: Device, on_device: bool) -> None:
    # ONNX does not define booleans of other bytes than 0 and 1.
    numbers = np.repeat(np.array([0, 1, 2, 128, 255], np.uint8), 5)
    a, b, k = numbers.view(bool), numbers.reshape(5, 5).T.ravel().view(bool), numbers[:25:2]
    truth, other = numbers != 0, b.view(np.uint8) != 0
    wanted = {
        "a": truth,
        "k": np.resize(k, 25) != 0,
        "not": ~truth,
        "and": truth & other,
        "or": truth | other,
        "xor": truth ^ other,
        "equal": truth == other,
        "bytes": truth.view(np.uint8),
        "cast": truth,
        "not_cast": ~truth,
        "cast_again": (~truth).view(np.uint8),
        "xor_cast": truth ^ (np.resize(k, 25) != 0),
        "equal_cast": truth == other,
    }
    outputs = {name: (str(x.dtype), [25]) for name, x in wanted.items()}
    inputs = {"a": ("?", [25]), "b": ("?", [25]), "u": ("u1", [25])}
    # An initializer's bytes are in the file as they are.
    constant = onnx.TensorProto(
        name="k", dims=[25], data_type=code("?"), raw_data=np.resize(k, 25).tobytes()
    )
    graph = model_of(BOOLEANS, inputs, outputs, [constant])
    prepared = prepare(graph, device)
    given = {"a": a, "b": b, "u": numbers}
    says_golden = golden(graph, given)
    sent = {name: device.asarray(x) if on_device else x for name, x in given.items()}
    for (name, expected), got, says in zip(
        wanted.items(), prepared.run(sent), says_golden, strict=True
    ):
        assert same(got, expected), name
        assert same(says, expected), f"{name}, the golden model"


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_opset_11_shifts_out_what_exceeds_the_width(dtype: str, device: Device) -> None:
    nodes = [node("BitShift", "a b", "y", direction="RIGHT")]
    declared = {"a": (dtype, [3]), "b": (dtype, [3])}
    prepared = prepare(model_of(nodes, declared, {"y": (dtype, [3])}, opset=11), device)
    width = 8 * np.dtype(dtype).itemsize
    a, b = np.full(3, 128, dtype), np.array([7, width, 255], dtype)
    assert prepared.run([a, b]).y.tolist() == [1, 0, 0]


def test_axes_may_be_any_length_and_none(device: Device) -> None:
    nodes = [node("Xor", "a b", "y")]
    declared = {"a": ("?", ["n", None]), "b": ("?", [1, "m"])}
    prepared = prepare(model_of(nodes, declared, {"y": ("?", ["n", "m"])}), device)
    for rows, columns in ((3, 2), (1, 7), (0, 4), (2, 0)):
        a, b = random((rows, columns), "u1") % 2 == 1, random((1, columns), "u1", 2) % 2 == 1
        assert same(prepared.run([a, b]).y, a ^ b)


def test_other_layouts_and_byte_orders_are_inputs_too(device: Device) -> None:
    nodes = [node("BitwiseNot", "a", "y")]
    prepared = prepare(model_of(nodes, {"a": ("u2", [2, 3])}, {"y": ("u2", [2, 3])}), device)
    a = random((6, 4), "u2")[::-2, 1:3].T
    for given in (a, a.astype(">u2"), device.asarray(a)):
        assert same(prepared.run([given]).y, ~a)


PAIR = {"a": ("u1", ["n", 4]), "b": ("u1", ["n", 4])}


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"a": (3, 4)}, OnnxError, "input 'b': nothing given; expected uint8 of shape (n, 4)"),
        ({"a": (3, 4), "b": (3, 4), "c\n": ()}, OnnxError, r"input 'c\n': the model has none"),
        ({"a": (3, 4), "b": (3, 5)}, ShapeError, "'b': shape (3, 5); expected uint8 of shape"),
        ({"a": (3, 4), "b": (4,)}, ShapeError, "'b': shape (4,); expected uint8 of shape (n, 4)"),
        ({"a": (3, 4), "b": (2, 4)}, ShapeError, "of shape (n, 4), 'n' being 3"),
        ({"a": (), "b": (3, 4)}, ShapeError, "'a': shape (); expected uint8 of shape (n, 4)"),
        ([(3, 4)], OnnxError, "inputs: 1; expected 2: 'a', 'b'"),
    ],
)
def test_other_inputs_are_refused(
    given: dict[str, tuple[int, ...]] | list[tuple[int, ...]],
    kind: type[Exception],
    message: str,
    device: Device,
) -> None:
    prepared = prepare(model_of([node("BitwiseOr", "a b", "y")], PAIR, {"y": PAIR["a"]}), device)
    inputs = (
        {name: np.zeros(shape, np.uint8) for name, shape in given.items()}
        if isinstance(given, dict)
        else [np.zeros(shape, np.uint8) for shape in given]
    )
    with pytest.raises(kind) as caught:
        prepared.run(inputs)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not link_of(device).log


def test_inputs_of_another_type_are_refused(device: Device) -> None:
    prepared = prepare(model_of([node("BitwiseOr", "a b", "y")], PAIR, {"y": PAIR["a"]}), device)
    good = np.zeros((3, 4), np.uint8)
    for bad in (good.astype("i1"), good.astype("u2"), good.astype("?"), good.tolist()):
        with pytest.raises(DataTypeError, match=r"input 'b': .*; expected uint8 of shape"):
            prepared.run([good, bad])


def test_shapes_that_do_not_go_together_name_the_node(device: Device) -> None:
    declared = {"a": ("u1", [None]), "b": ("u1", [None])}
    nodes = [node("BitwiseXor", "a b", "y")]
    prepared = prepare(model_of(nodes, declared, {"y": ("u1", [3])}), device)
    with pytest.raises(ShapeError, match=r"node 0 \(BitwiseXor\): .*\(2,\) and \(3,\)"):
        prepared.run([np.zeros(2, np.uint8), np.zeros(3, np.uint8)])
    with pytest.raises(ShapeError, match=r"'y': shape \(4,\); expected uint8 of shape \(3,\)"):
        prepared.run([np.zeros(4, np.uint8), np.zeros(1, np.uint8)])
    assert not link_of(device).log
