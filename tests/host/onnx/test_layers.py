"""Binary layers: products of 1 and -1 are counted on the device, with equal results."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

from bitlane import Device
from bitlane.onnx import OnnxError, OnnxLackingError, PreparedGraph, prepare
from bitlane.onnx.model import DeviceGroup
from support.host import binary_layers
from support.host.arrays import model, same
from support.host.onnx_binary import BIPOLAR, Network, as_where
from support.host.onnx_models import model_of, node, tensor


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


NOT_SIGNS = signs((4, 3), 1)
NOT_SIGNS[2, 1] = 0


@pytest.mark.parametrize(
    "graph",
    [
        product(NOT_SIGNS),
        product(2 * signs((4, 3), 1)),
        product(signs((4, 3), 1), sides=(1, 0)),
        product(signs((4, 3), 1), sides=(2, -2)),
        product(signs((4, 3), 1), sides=(-1, 1)),
        product(signs((4, 3), 1), sides=([[1]], [[-1]])),
        product(signs((4, 3), 1), sides=([1, 1, 1, 1], -1)),
        product(signs((4, 3), 1), columns="m"),
        product(signs((4, 3), 1), opset=12),
    ],
)
def test_other_products_stay_as_they_are(graph: ModelProto, device: Device) -> None:
    prepared = prepare(graph, device, rest="reference")
    assert "ReduceSum" not in str(groups_of(prepared))
    c = np.random.default_rng(2).integers(0, 2, (5, 4)) == 1
    (wanted,) = ReferenceEvaluator(graph).run(None, {"c": c})
    assert same(prepared.run([c])[0], np.asarray(wanted))


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("one", [1, [1]])
def test_products_of_signs_are_counts(kind: str, one: Any, device: Device) -> None:
    graph = product(signs((4, 3), 1), sides=(one, -1), kind=kind)
    prepared = prepare(graph, device, rest="reference")
    assert groups_of(prepared) == [LAYER]
    c = np.random.default_rng(2).integers(0, 2, (5, 4)) == 1
    (wanted,) = ReferenceEvaluator(graph).run(None, {"c": c})
    assert same(prepared.run([c])[0], np.asarray(wanted))


@pytest.mark.parametrize("rows", [(), (2,), (2, 3)])
def test_products_of_any_rank_are_counts(rows: tuple[int, ...], device: Device) -> None:
    graph = product(signs((4, 3), 1), rows=rows)
    prepared = prepare(graph, device, rest="reference")
    assert groups_of(prepared) == [LAYER]
    c = np.random.default_rng(2).integers(0, 2, (*rows, 4)) == 1
    (wanted,) = ReferenceEvaluator(graph).run(None, {"c": c})
    assert same(prepared.run([c])[0], np.asarray(wanted))


def test_lengths_that_do_not_fit_are_refused(device: Device) -> None:
    with pytest.raises(OnnxError, match=r"MatMul|Incompatible|[Dd]imension"):
        prepare(product(signs((4, 3), 1), columns=1), device, rest="reference").run([[[True]]])
    unknown = prepare(product(signs((4, 3), 1), columns="m"), device, rest="reference")
    with pytest.raises(OnnxError, match="rest 'reference': "):
        unknown.run([np.ones((5, 1), bool)])


def test_lengths_that_a_model_claims_are_not_trusted(device: Device) -> None:
    # Xor would repeat an axis of length 1.
    graph = product(signs((4, 3), 1), columns="m")
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
    graph = product(signs((4, 3), 1))
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
