"""Bad ONNX models are refused in one line, before anything is executed or opened."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto, TensorProto, helper

from bitlane import Device
from bitlane.errors import BitlaneError, DataTypeError, OtherDeviceError, ShapeError
from bitlane.onnx import OnnxError, PreparedGraph, is_compatible, load, prepare, run_node
from support.host.arrays import link_of, model
from support.host.onnx_binary import Network, as_where
from support.host.onnx_models import model_of, node, tensor
from support.host.refusals import refused, takes_or_refuses
from support.seeds import seeds

U1 = ("u1", [4])
Change = Callable[[ModelProto], object]


def good(opset: int = 28) -> ModelProto:
    return model_of(
        [node("BitwiseAnd", "a k", "x"), node("BitwiseXor", "x b", "y")],
        {"a": U1, "b": U1},
        {"y": U1},
        [tensor("k", np.arange(4, dtype=np.uint8))],
        opset=opset,
    )


def of(*nodes: NodeProto, dtype: str = "u1", opset: int = 28) -> ModelProto:
    """Return a model of ``nodes`` that compute y from a and b."""
    declared = dtype, [4]
    return model_of(nodes, {"a": declared, "b": declared}, {"y": declared}, opset=opset)


def refuse(bad: ModelProto, words: str) -> None:
    """Expect that ``bad`` is refused with ``words``, which are printed in a line."""
    device = model()
    link_of(device).traffic.clear()
    with refused(device, BitlaneError, words) as caught:
        prepare(bad, device)
    assert link_of(device).traffic == []
    assert isinstance(caught.value, OnnxError | ShapeError)
    assert str(caught.value).isprintable(), caught.value
    assert not is_compatible(bad)


def test_the_good_one_is_taken() -> None:
    assert is_compatible(good())
    assert len(prepare(good(), model()).run([np.zeros(4, np.uint8)] * 2)) == 1


SHIFT = node("BitShift", "a b", "y", direction="LEFT")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (of(helper.make_node("Add", ["a", "b"], ["y"], "sum")), r"node 'sum' \(Add\): an operator"),
        (of(helper.make_node("Xor", ["a"], ["y"], domain="its.own")), r"node 0 \(its.own.Xor\)"),
        (of(node("E\nvil", "a", "y")), r"node 0 \(E\\nvil\): an operator that bitlane does not"),
        (good(opset=17), r"\(BitwiseAnd\): opset 17; expected it as of opset 18"),
        (good(opset=99), "model: opset 99; expected 1 to "),
        (good(opset=0), "model: opset 0; expected 1 to "),
        (of(SHIFT, opset=10), r"\(BitShift\): opset 10; expected it as of opset 11 or 28"),
        (of(node("Xor", "a b", "y"), dtype="?", opset=6), "opset 6, where it is as of 1; expected"),
        (of(node("BitCast", "a", "y", to=3), opset=25), "opset 25; expected it as of opset 26"),
        (of(SHIFT, dtype="i1", opset=27), r"input 'a': int8; expected tensor\(uint8\)"),
        (of(node("BitwiseNot", "a", "y"), dtype="?"), r"input 'a': bool; expected tensor\(uint8\)"),
        (of(node("And", "a b", "y")), r"input 'a': uint8; expected tensor\(bool\) \(as of 7\)"),
        (of(node("BitwiseOr", "a b", "y"), dtype="f4"), "input 'a': float32; expected "),
        (of(node("Equal", "a b", "y")), "output 'y': it is bool; declared as uint8"),
        (of(node("Equal", "a b", "y"), dtype="?", opset=6), "opset 6, where it is as of 1; expect"),
        (of(node("Equal", "a b", "y"), dtype="u1", opset=10), "input 'a': uint8; expected tensor"),
        (of(node("BitCast", "a", "y", to=6)), "from uint8 to int32; expected as many bits"),
        (of(node("BitCast", "a", "y", to=8)), "to: data type STRING; expected one of BOOL"),
        (of(node("BitCast", "a", "y", to=16)), "to: data type BFLOAT16; expected one of BOOL"),
        (of(node("BitCast", "a", "y", to=-5)), "to: data type -5; expected one of BOOL"),
        (of(node("BitCast", "a", "y", to="UINT8")), "attribute 'to': of another type; expected an"),
        (of(node("BitCast", "a", "y")), "attribute 'to': nothing given; expected an integer"),
        (of(node("BitShift", "a b", "y")), "'direction': nothing given; expected a string"),
        (of(node("BitShift", "a b", "y", direction="UP")), "direction 'UP'; expected LEFT or"),
        (of(node("BitShift", "a b", "y", direction=b"\xff\n")), r"direction '\\\\xff\\n'; expec"),
        (of(node("BitwiseNot", "a", "y", axis=1)), "attribute 'axis': unknown, or there already"),
        (of(node("BitwiseNot", "a b", "y")), "2 inputs; expected 1"),
        (of(helper.make_node("BitwiseXor", ["a", ""], ["y"])), "input '': neither the graph nor"),
        (of(helper.make_node("BitwiseNot", ["a"], ["y", "z"])), "2 outputs; expected one"),
        (of(helper.make_node("BitwiseNot", ["a"], [""])), "1 outputs; expected one, with a name"),
        (of(node("BitwiseNot", "y", "y")), "input 'y': .*without cycles"),
        (of(node("BitwiseXor", "a z", "y"), node("BitwiseNot", "y", "z")), "'z': .*without cycles"),
        (of(node("BitwiseNot", "a", "a")), "output 'a': expected a name that nothing else has"),
        (of(node("BitwiseNot", "a", "z")), "output 'y': nothing in the graph gives it"),
        (of(node("BitCast", "a", "y", to=3)), "output 'y': it is int8; declared as uint8"),
    ],
)
def test_nodes_that_are_refused(bad: ModelProto, message: str) -> None:
    refuse(bad, message)


def test_two_types_in_one_node_are_refused() -> None:
    declared = {"a": U1, "b": ("u2", [4])}
    bad = model_of([node("BitwiseXor", "a b", "y")], declared, {"y": U1})
    refuse(bad, "input 'b': uint16; expected uint8, as the other")


def external(bad: ModelProto, place: str = "../../etc/passwd") -> None:
    constant = bad.graph.initializer[0]
    constant.ClearField("raw_data")
    constant.data_location = TensorProto.EXTERNAL
    constant.external_data.add(key="location", value=place)


def hidden(bad: ModelProto) -> None:
    """Add external data in an attribute whose type is an integer, not a tensor."""
    cast = bad.graph.node.add()
    cast.CopyFrom(node("BitCast", "a", "z", to=3))
    cast.attribute[0].t.data_type = TensorProto.UINT8
    cast.attribute[0].t.data_location = TensorProto.EXTERNAL
    cast.attribute[0].t.external_data.add(key="location", value="../../etc/passwd")


def constant(**fields: object) -> Change:
    def change(bad: ModelProto) -> None:
        bad.graph.initializer[0].MergeFrom(TensorProto(**fields))

    return change


def dims(*shape: int) -> Change:
    def change(bad: ModelProto) -> None:
        bad.graph.initializer[0].dims[:] = shape

    return change


def declared(name: str, data_type: int, axis: int) -> Change:
    """Return a change that adds an input."""
    return lambda bad: bad.graph.input.append(
        helper.make_tensor_value_info(name, data_type, [axis])
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (external, "initializer 'k': its data lies in another file; expected it in the model"),
        (
            lambda m: m.graph.initializer[0].external_data.add(key="location", value="x"),
            "initializer 'k': its data lies in another file",
        ),
        (hidden, "attribute 'to': tensor '': its data lies in another file; expected it in the"),
        (lambda m: m.graph.node[0].attribute.add(name="t").t, "'t': unknown, or there already"),
        (constant(data_type=8), "initializer 'k': data type STRING; expected one of BOOL"),
        (constant(data_type=16), "initializer 'k': data type BFLOAT16"),
        (constant(data_type=99), "initializer 'k': data type 99"),
        (constant(data_type=7), "initializer 'k': .*expected the bytes of"),
        (constant(raw_data=b"abc"), "initializer 'k': .*expected the bytes of"),
        (dims(-1), r"initializer 'k': shape \(-1,\); expected 0 or more"),
        (dims(5), "initializer 'k': cannot reshape"),
        (dims(2**40, 2**40), "initializer 'k': cannot reshape"),
        (dims(0, 2**62, 2**62), "initializer 'k': .*expected the bytes of"),
        (lambda m: m.graph.initializer.add(name="k"), "initializer 'k': expected a name that"),
        (lambda m: m.graph.input.add(name="z"), "input 'z': no type; expected a tensor"),
        (
            lambda m: m.graph.input.append(helper.make_tensor_sequence_value_info("z", 2, None)),
            "input 'z': sequence_type; expected a tensor",
        ),
        (lambda m: m.graph.input.append(m.graph.input[0]), "input 'a': expected a name that"),
        (declared("k", 3, 4), "initializer 'k': uint8; declared as int8"),
        (declared("k", 2, 5), r"'k': shape \(4,\); expected uint8 of shape \(5,\)"),
        (declared("z", 2, -4), "input 'z': an axis of -4; expected 0 or more"),
        (declared("z", 8, 4), "input 'z': data type STRING"),
        (lambda m: m.graph.ClearField("output"), "graph: no outputs; expected one at least"),
        (lambda m: m.graph.output.append(m.graph.output[0]), "output 'y': there twice; expected"),
        (lambda m: m.graph.sparse_initializer.add(), "sparse initializers; expected dense ones"),
        (lambda m: m.functions.add(name="Xor"), r"model: onnx\.checker: .*domain"),
        (lambda m: m.training_info.add(), "model: training_info; expected a graph alone"),
        (lambda m: m.ClearField("opset_import"), "model: 0 opsets of ONNX's own operators"),
        (lambda m: m.opset_import.add(domain="ai.onnx", version=18), "model: 2 opsets"),
        (lambda m: m.ClearField("ir_version"), r"model: onnx\.checker: .*ir_version"),
        (lambda m: setattr(m, "ir_version", 99), r"model: onnx\.checker: .*99"),
        (lambda m: m.Clear(), "model: 0 opsets"),
    ],
)
def test_models_that_are_refused(change: Change, message: str) -> None:
    bad = good()
    change(bad)
    refuse(bad, message)


def test_no_file_is_opened_for_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Were it followed, the name would lead to four bytes that fit.
    (tmp_path / "inside").mkdir()
    (tmp_path / "data").write_bytes(b"\0\1\2\3")
    monkeypatch.chdir(tmp_path / "inside")
    bad = good()
    external(bad, "../data")
    Path("m.onnx").write_bytes(bad.SerializeToString())
    opened: list[str] = []
    plain = io.open

    def noting(file: object, *arguments: object, **options: object) -> object:
        opened.append(str(file))
        return plain(file, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(io, "open", noting)
    refuse(load("m.onnx"), "lies in another file")
    assert opened == ["m.onnx"]


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    whole = good().SerializeToString()
    file = tmp_path / "m.onnx"
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(OnnxError) as caught:
            prepare(load(file), model())
        assert str(caught.value).isprintable(), size
    file.write_bytes(whole)
    assert is_compatible(load(file))


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"{}", b"\x93NUMPY", bytes(1000), b"\xff" * 1000):
        file = tmp_path / "m.onnx"
        file.write_bytes(content)
        with pytest.raises(OnnxError):
            prepare(load(file), model())
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.onnx")


MIXED = """<ir_version: 10, opset_import: ["": 18, "own": 1]>
g (bool c, int32[n] a, int32[n] b) => (int32[n] y) {
    x = BitwiseXor(a, b)
    t = If (c) <
        then_branch = one () => (int32[n] p) { q = Neg(x) p = Add(q, b) },
        else_branch = two () => (int32[n] r) { r = own.Twisted(a, x) }
    >
    y = BitwiseNot(t)
}
<domain: "own", opset_import: ["": 18]>
Twisted (a, b) => (y) { x = BitwiseXor(a, b) s = Add(x, b) y = BitwiseNot(s) }"""


@pytest.mark.parametrize("rest", [None, "reference"])
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_a_damaged_model_is_refused_or_another_model(seed: int, rest: Any) -> None:
    choose = np.random.default_rng(seed)
    signs = np.array([[1, -1]] * 8, np.float32)
    binary = as_where(Network([signs, signs[:2]], [np.zeros(2, np.float32)]), bipolar=True)
    models = [onnx.parser.parse_model(MIXED), binary] if rest else [good()]
    whole = [np.frombuffer(each.SerializeToString(), np.uint8) for each in models]
    messages = []
    for number in range(200 * (3 - len(models))):
        damaged = whole[number % len(models)].copy()
        for at in choose.integers(0, damaged.size, choose.integers(1, 3)):
            damaged[at] ^= 1 << choose.integers(8)
        try:
            prepare(ModelProto.FromString(damaged.tobytes()), model(), rest=rest)
        except DecodeError:
            continue
        except BitlaneError as error:
            messages.append(str(error))
    assert len(messages) > 80
    assert [x for x in messages if not x.isprintable()] == []


# --- inputs and settings ----------------------------------------------------------------------

PAIR = {"a": ("u1", ["n", 4]), "b": ("u1", ["n", 4])}
OR = model_of([node("BitwiseOr", "a b", "y")], PAIR, {"y": PAIR["a"]})
ANY = {"a": ("u1", [None]), "b": ("u1", [None])}
ADDED = model_of([node("BitwiseXor", "a b", "y")], ANY, {"y": ("u1", [3])})
GOOD = np.zeros((3, 4), np.uint8)


def zeros(**shapes: tuple[int, ...]) -> dict[str, Any]:
    return {name: np.zeros(shape, np.uint8) for name, shape in shapes.items()}


A_LIST = "expected a list of arrays, or arrays"
WANTED = r"expected uint8 of shape \(n, 4\)"


@pytest.mark.parametrize(
    ("graph", "given", "error", "words"),
    [
        (OR, zeros(a=(3, 4)), OnnxError, rf"input 'b': nothing given; {WANTED}"),
        (OR, zeros(a=(3, 4), b=(3, 4)) | {"c\n": GOOD}, OnnxError, r"input 'c\\n': the model has"),
        (OR, zeros(a=(3, 4), b=(3, 5)), ShapeError, r"'b': shape \(3, 5\); expected uint8 of sha"),
        (OR, zeros(a=(3, 4), b=(4,)), ShapeError, rf"'b': shape \(4,\); {WANTED}"),
        (OR, zeros(a=(3, 4), b=(2, 4)), ShapeError, r"of shape \(n, 4\), 'n' being 3"),
        (OR, zeros(a=(), b=(3, 4)), ShapeError, rf"'a': shape \(\); {WANTED}"),
        (OR, [GOOD], OnnxError, "inputs: 1; expected 2: 'a', 'b'"),
        (OR, None, OnnxError, f"^inputs: None; {A_LIST}"),
        (OR, 3, OnnxError, f"^inputs: 3; {A_LIST}"),
        *(
            (OR, [GOOD, bad], DataTypeError, "input 'b': .*; expected uint8 of shape")
            for bad in (GOOD.astype("i1"), GOOD.astype("u2"), GOOD.astype("?"), GOOD.tolist())
        ),
        (ADDED, zeros(a=(2,), b=(3,)), ShapeError, r"node 0 \(BitwiseXor\): .*\(2,\) and \(3,\)"),
        (ADDED, zeros(a=(4,), b=(1,)), ShapeError, r"'y': shape \(4,\); expected uint8 of sha"),
    ],
)
def test_inputs_that_are_refused(
    graph: ModelProto, given: Any, error: type[Exception], words: str, device: Device
) -> None:
    prepared = prepare(graph, device)
    with refused(device, error, words, sent=graph is ADDED):
        prepared.run(given)


def test_arrays_on_another_device_are_refused(device: Device) -> None:
    prepared = prepare(OR, device)
    with model() as other:
        given = {"a": device.asarray(GOOD), "b": other.asarray(GOOD)}
        for use in (prepared.run, prepared.arrays, prepared.explain):
            with refused(device, OtherDeviceError, "input 'b': an array on .*; expected one"):
                use(given)


@pytest.mark.parametrize(
    "call",
    [
        lambda graph, x: prepare(x, graph.device),
        lambda graph, x: graph.run(x),
        lambda graph, x: graph.run([x, x]),
        lambda graph, x: graph.run({"a": x, "b": GOOD}),
        lambda graph, x: graph.arrays(x),
        lambda graph, x: graph.explain(x),
        lambda graph, x: run_node(node("BitwiseNot", "a", "y"), [x], graph.device),
        lambda graph, x: run_node(node("BitwiseNot", "a", "y"), x, graph.device),
        lambda graph, x: prepare(OR, graph.device, rest=x),
    ],
)
def test_an_argument_of_any_kind_is_taken_or_refused_in_one_line(
    device: Device, call: Callable[[PreparedGraph, Any], object]
) -> None:
    graph = prepare(OR, device)
    takes_or_refuses(lambda value: call(graph, value), device, sent=True)
