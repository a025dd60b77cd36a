"""Binary layers: products of 1 and -1, and differences of bits, are counted on the device."""

import json
from itertools import pairwise
from itertools import product as combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

from bitlane import Device
from bitlane.onnx import OnnxError, OnnxLackingError, PreparedGraph, prepare
from bitlane.onnx.model import DeviceGroup
from bitlane.onnx.packing import pack_bits
from bitlane_rtl.abi import Lane
from support.host import binary_layers
from support.host.arrays import model, random, same, uploads
from support.host.onnx_binary import BIPOLAR, Network, as_where
from support.host.onnx_models import code, model_of, node, tensor


def signs(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).choice(np.array([-1, 1], np.float32), shape)


def random_network(*widths: int) -> Network:
    sizes = list(pairwise(widths))
    weights = [signs(size, at) for at, size in enumerate(sizes)]
    thresholds = [
        np.random.default_rng(at).integers(-3, 4, m).astype(np.float32)
        for at, (_, m) in enumerate(sizes[:-1])
    ]
    return Network(weights, thresholds)


def groups_of(prepared: PreparedGraph) -> list[list[str]]:
    """Return the operators of each group of the device."""
    return [
        [each.operator for each in group.nodes]
        for group in prepared.graph.groups
        if isinstance(group, DeviceGroup)
    ]


LAYER = ["Unsqueeze", "Xor", "Cast", "ReduceSum"]


@pytest.mark.parametrize("bipolar", [False, True])
def test_each_activation_is_equal(bipolar: bool, device: Device) -> None:
    network = random_network(24, 33, 64, 10)
    pixels = np.random.default_rng(5).integers(0, 16, (7, 24)).astype(np.float32)
    prepared = prepare(as_where(network, bipolar=bipolar), device, rest="reference")
    assert groups_of(prepared) == [LAYER] * 3
    got = prepared.run([pixels])
    *layers, scores = network.activations(pixels > 7)
    assert same(got[-1], scores.astype(np.float32))
    if not bipolar:
        assert [same(x, y) for x, y in zip(got[1:-1], layers, strict=True)] == [True, True]
        wanted = ReferenceEvaluator(as_where(network)).run(None, {"pixels": pixels})
        assert [same(x, np.asarray(y)) for x, y in zip(got, wanted, strict=True)] == [True] * 4


def test_packed_bits_are_sent(device: Device) -> None:
    network = random_network(64, 128, 10)
    prepared = prepare(as_where(network), device, rest="reference")
    explained = prepared.explain([np.zeros((5, 64), np.float32)])
    # 5 rows and 128 columns of 64 bits; then 10 columns of 128.
    assert f"({5 * 8 + 128 * 8:,} bytes), gives" in explained
    assert f"({5 * 16 + 10 * 16:,} bytes), gives" in explained
    assert "COUNT_XOR SUM  5 x 10 x 2 of 64 bits" in explained


def test_without_a_rest_the_model_is_refused_as_it_is() -> None:
    with pytest.raises(OnnxLackingError, match=r"node 0 \(GreaterOrEqual\): .*node 2 \(MatMul\)"):
        prepare(as_where(random_network(24, 10)), model())


def product(
    weights: NDArray[Any],
    *,
    sides: tuple[Any, Any] = (1, -1),
    columns: int | str = 4,
    kind: str = "f4",
    rows: tuple[int | str, ...] = ("n",),
    opset: int = 18,
) -> ModelProto:
    """Return a model of one product of signs of c."""
    nodes = [node("Where", "c one other", "s"), node("MatMul", "s w", "y")]
    constants = [
        tensor("one", np.array(sides[0], kind)),
        tensor("other", np.array(sides[1], kind)),
        tensor("w", weights.astype(kind)),
    ]
    declared: Any = {"c": ("?", [*rows, columns])}
    output = kind, [*rows, weights.shape[1]]
    return model_of(nodes, declared, {"y": output}, constants, opset=opset)


W = signs((4, 3), 1)
NOT_SIGNS = W * (np.arange(12).reshape(4, 3) != 7)


@pytest.mark.parametrize(
    ("graph", "counted"),
    [
        (product(NOT_SIGNS), False),
        (product(2 * W), False),
        *(
            (product(W, sides=sides), False)
            for sides in ((1, 0), (2, -2), (-1, 1), ([[1]], [[-1]]), ([1, 1, 1, 1], -1))
        ),
        (product(W, columns="m"), False),
        (product(W, opset=12), False),
        *(
            (product(W, sides=(one, -1), kind=kind), True)
            for kind in ("f4", "f8")
            for one in (1, [1])
        ),
        *((product(W, rows=rows), True) for rows in ((), (2,), (2, 3))),
    ],
)
def test_products_of_signs_are_counts_and_no_others(
    graph: ModelProto, counted: bool, device: Device
) -> None:
    prepared = prepare(graph, device, rest="reference")
    assert ("ReduceSum" in str(groups_of(prepared))) == counted
    assert not counted or groups_of(prepared) == [LAYER]
    axes = [axis.dim_value or 5 for axis in graph.graph.input[0].type.tensor_type.shape.dim]
    c = np.random.default_rng(2).integers(0, 2, [*axes[:-1], 4]) == 1
    (wanted,) = ReferenceEvaluator(graph).run(None, {"c": c})
    assert same(prepared.run([c])[0], np.asarray(wanted))


def test_lengths_that_do_not_fit_are_refused(device: Device) -> None:
    with pytest.raises(OnnxError, match=r"MatMul|Incompatible|[Dd]imension"):
        prepare(product(W, columns=1), device, rest="reference").run([[[True]]])
    unknown = prepare(product(W, columns="m"), device, rest="reference")
    with pytest.raises(OnnxError, match="rest 'reference': "):
        unknown.run([np.ones((5, 1), bool)])


def test_lengths_that_a_model_claims_are_not_trusted(device: Device) -> None:
    # Xor would repeat an axis of length 1.
    graph = product(W, columns="m")
    graph.graph.value_info.append(helper.make_tensor_value_info("s", 1, ["n", 4]))
    with pytest.raises(OnnxError, match="rest 'reference': "):
        prepare(graph, device, rest="reference").run([np.ones((5, 1), bool)])


def test_a_condition_without_axes_is_not_counted(device: Device) -> None:
    graph = product(signs((1, 3), 1), sides=([1], [-1]), columns=1, rows=())
    del graph.graph.input[0].type.tensor_type.shape.dim[:]
    for c in (np.array(True), np.array(False)):
        (wanted,) = ReferenceEvaluator(graph).run(None, {"c": c})
        assert same(prepare(graph, device, rest="reference").run([c])[0], np.asarray(wanted))


def test_names_inside_of_nodes_are_not_taken_again(device: Device) -> None:
    graph = product(W)
    branches = [
        helper.make_graph(
            [node(operator, "y", "y.rows")],
            operator,
            [],
            [helper.make_tensor_value_info("y.rows", 1, [None, 3])],
        )
        for operator in ("Neg", "Abs")
    ]
    chosen = node("If", "k", "z", then_branch=branches[0], else_branch=branches[1])
    graph.graph.node.append(chosen)
    graph.graph.input.append(helper.make_tensor_value_info("k", 9, []))
    graph.graph.output.append(helper.make_tensor_value_info("z", 1, [None, 3]))
    c = np.random.default_rng(2).integers(0, 2, (5, 4)) == 1
    got = prepare(graph, device, rest="reference").run([c, np.array(True)])
    assert same(got[1], -got[0])


def test_a_scale_that_is_computed_is_refused_by_name(device: Device) -> None:
    graph = as_where(random_network(24, 10), bipolar=True)
    for each in graph.graph.node:
        if each.domain == BIPOLAR and each.input[0] == "d0":
            each.input[1] = "scale"
    graph.graph.input.append(helper.make_tensor_value_info("scale", 1, []))
    with pytest.raises(OnnxError, match="BipolarQuant"):
        prepare(graph, device, rest="reference")


# --- packed bits: differences of truth values are counted from them -------------------------------


def bits(shape: tuple[int, ...], seed: int) -> NDArray[np.bool_]:
    return np.asarray(random(shape, "u1", seed) % 2 == 1)


def layer(
    width: int,
    *,
    operator: str = "Xor",
    kind: str = "i4",
    weights: NDArray[Any] | None = None,
    keep: int = 0,
    extra: tuple[Any, ...] = (),
    outputs: tuple[str, ...] = (),
) -> ModelProto:
    """Return a model that counts how many bits of rows of a differ from those of rows of w."""
    nodes = [
        node("Unsqueeze", "a middle", "u"),
        node(operator, "u w", "x"),
        node("Cast", "x", "n", to=code(kind)),
        node("ReduceSum", "n last", "y", keepdims=keep),
        *extra,
    ]
    constants = [tensor("middle", np.array([1])), tensor("last", np.array([-1]))]
    declared: dict[str, Any] = {"a": ("?", ["n", width])}
    if weights is None:
        declared["w"] = ("?", [5, width])
    else:
        constants.append(tensor("w", weights))
    wanted: dict[str, Any] = {"y": (kind, [None] * (2 + keep))}
    wanted |= {name: ("?", [None] * 3 if name == "x" else [None] * 2) for name in outputs}
    return model_of(nodes, declared, wanted, constants)


PACKED = list(combinations(("Xor", "Equal"), ("i4", "i8", "u4", "u8"), (1, 7, 8, 24, 64, 65, 128)))


@pytest.mark.parametrize(
    ("operator", "kind", "width"),
    [
        pytest.param(*case, marks=[] if number % 5 == 0 else [pytest.mark.slow])
        for number, case in enumerate(PACKED)
    ],
)
def test_sums_are_those_of_bytes(width: int, kind: str, operator: str, device: Device) -> None:
    a, w = bits((6, width), 1), bits((5, width), 2)
    wanted = (a[:, None] != w if operator == "Xor" else a[:, None] == w).sum(-1).astype(kind)
    for weights in (None, w):
        model = layer(width, operator=operator, kind=kind, weights=weights, keep=1)
        given = {"a": a} if weights is not None else {"a": a, "w": w}
        assert same(prepare(model, device).run(given)[0], wanted[..., None])


def test_bits_in_another_order_of_memory_are_packed_alike(device: Device) -> None:
    a, w = bits((6, 64), 1), bits((5, 64), 2)
    prepared = prepare(layer(64, weights=w), device)
    for given in (np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2], a[::-1][::-1]):
        assert same(prepared.run([given])[0], (a[:, None] != w).sum(-1).astype("i4"))


def test_bits_are_sent_and_weights_once(device: Device) -> None:
    a, w = bits((6, 64), 1), bits((5, 64), 2)
    uploads(device)
    prepared = prepare(layer(64, weights=w), device)
    for sent in ([6 * 8, 5 * 8], [6 * 8]):
        assert same(prepared.run([a])[0], (a[:, None] ^ w).sum(-1).astype("i4"))
        assert sorted(uploads(device)) == sorted(sent)


def test_one_pass_reads_the_packed_bits(device: Device) -> None:
    a, w = bits((6, 128), 1), bits((5, 128), 2)
    lines = prepare(layer(128, weights=w), device).explain([a]).splitlines()
    assert lines[1].split("  ")[:2] == ["COUNT_XOR SUM", "6 x 5 x 2 of 64 bits"]


@pytest.mark.parametrize(
    "model",
    [
        layer(64, outputs=("x",)),
        layer(64, extra=(node("Not", "a", "b"),), outputs=("b",)),
        layer(64, extra=(node("And", "a a", "b"),), outputs=("b",)),
        layer(63, operator="Equal"),
    ],
)
def test_values_that_others_read_are_sent_as_they_are(model: ModelProto, device: Device) -> None:
    width = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    a, w = bits((6, width), 1), bits((5, width), 2)
    prepared = prepare(model, device)
    uploads(device)
    got = prepared.run({"a": a, "w": w})
    # Constants of passes have 8 bytes.
    assert [x for x in sorted(uploads(device)) if x > 8] == [5 * width, 6 * width]
    equal = "Equal" in {each.op_type for each in model.graph.node}
    wanted = (a[:, None] == w if equal else a[:, None] ^ w).sum(-1).astype("i4")
    assert same(got.y, wanted)


def test_arrays_on_the_device_are_read_as_they_are(device: Device) -> None:
    a, w = bits((6, 64), 1), bits((5, 64), 2)
    prepared = prepare(layer(64, weights=w), device)
    assert same(prepared.run([device.asarray(a)])[0], (a[:, None] ^ w).sum(-1).astype("i4"))
    assert same(prepared.run([a])[0], (a[:, None] ^ w).sum(-1).astype("i4"))


@pytest.mark.parametrize(
    ("operator", "a", "b", "axis"),
    [
        ("Equal", random((8, 16), "i4", 1) % 2, random((8, 16), "i4", 2) % 2, 1),
        *(("Xor", bits((8, 16, 8), 1), bits((16, 8), 2), axis) for axis in (0, 1, -2)),
        ("Xor", bits((4, 16), 1), bits((4, 1), 2), 1),
    ],
    ids=["integers", "axis 0", "axis 1", "axis -2", "a repeated last axis"],
)
def test_others_are_not_packed(operator: str, a: Any, b: Any, axis: int, device: Device) -> None:
    nodes = [
        node(operator, "a b", "x"),
        node("Cast", "x", "n", to=6),
        node("ReduceSum", "n axes", "y", keepdims=0),
    ]
    declared = {name: (x.dtype.str[1:], x.shape) for name, x in (("a", a), ("b", b))}
    declared = {name: (kind.replace("b1", "?"), shape) for name, (kind, shape) in declared.items()}
    axes = [tensor("axes", np.array([axis]))]
    model = model_of(nodes, declared, {"y": ("i4", [None] * (a.ndim - 1))}, axes)
    differ = a == b if operator == "Equal" else a ^ b
    assert same(prepare(model, device).run([a, b])[0], differ.sum(axis).astype("i4"))


@pytest.mark.parametrize(("count", "size"), [(1, 1), (8, 1), (16, 2), (24, 1), (32, 4), (64, 8)])
def test_the_widest_words_without_a_rest(count: int, size: int) -> None:
    packed = pack_bits(bits((3, count), 1), model().driver.geometry)
    assert packed.dtype == np.dtype(f"u{size}")
    found = np.unpackbits(packed.view("u1"), axis=-1, bitorder="little", count=count)
    assert np.array_equal(found == 1, bits((3, count), 1))


def test_other_bytes_of_true_are_one_bit() -> None:
    truth = np.array([0, 1, 2, 255], np.uint8).view(bool)
    assert pack_bits(truth, model().driver.geometry).tolist() == [0b1110]


@pytest.mark.parametrize(
    "lanes", [(Lane.BITS_8,), (Lane.BITS_8, Lane.BITS_16), (Lane.BITS_8, Lane.BITS_32)]
)
def test_words_are_as_wide_as_the_circuit_counts(lanes: tuple[Lane, ...]) -> None:
    device = model(lanes=frozenset(lanes))
    a, w = bits((6, 128), 1), bits((5, 128), 2)
    prepared = prepare(layer(128, weights=w), device)
    assert same(prepared.run([a])[0], (a[:, None] ^ w).sum(-1).astype("i4"))
    widest = 8 * max(lane.bytes for lane in lanes)
    assert f"6 x 5 x {128 // widest} of {widest} bits" in prepared.explain([a])


# --- a network that reads digits --------------------------------------------------------------


@pytest.fixture(scope="module")
def network() -> Network:
    return binary_layers.trained()


@pytest.mark.slow
@pytest.mark.parametrize(("url", "count"), binary_layers.DEVICES)
@pytest.mark.parametrize("bipolar", [False, True])
def test_digits_are_read_as_the_reference_reads_them(
    url: str, count: int, network: Network, bipolar: bool
) -> None:
    found = binary_layers.run(network, url, count, bipolar=bipolar)
    assert (found["digits"], found["differ"]) == (count, 0)
    assert found["values"] == count * (10 if bipolar else 64 + 256 + 256 + 10)
    assert found["right"] == found["right_in_numpy"] > 0.8 * count
    assert (found["predicted"] is None) == ("board" not in url)
    print(found)


def test_the_page_is_that_of_the_recorded_figures() -> None:
    recorded = json.loads(binary_layers.FIGURES.read_text(encoding="utf-8"))
    assert binary_layers.PAGE.read_text(encoding="utf-8") == binary_layers.text(recorded)
    assert {(row["device"], row["digits"]) for row in recorded["rows"]} == {*binary_layers.DEVICES}
    assert {row["differ"] for row in recorded["rows"]} == {0}
