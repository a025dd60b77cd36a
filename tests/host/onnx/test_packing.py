"""Differences of truth values are counted from packed bits, with equal sums and fewer bytes."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

from bitlane import Device
from bitlane.onnx import prepare
from bitlane.onnx.packing import pack_bits
from bitlane_rtl.abi import Lane
from support.host.arrays import model, random, same, uploads
from support.host.onnx_models import code, model_of, node, tensor


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


PACKED = list(product(("Xor", "Equal"), ("i4", "i8", "u4", "u8"), (1, 7, 8, 24, 64, 65, 128)))


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


def test_integers_are_not_bits(device: Device) -> None:
    nodes = [
        node("Equal", "a b", "x"),
        node("Cast", "x", "n", to=6),
        node("ReduceSum", "n axes", "y", keepdims=0),
    ]
    declared = {"a": ("i4", [8, 16]), "b": ("i4", [8, 16])}
    model = model_of(nodes, declared, {"y": ("i4", [8])}, [tensor("axes", np.array([1]))])
    a, b = random((8, 16), "i4", 1) % 2, random((8, 16), "i4", 2) % 2
    assert same(prepare(model, device).run([a, b])[0], (a == b).sum(1).astype("i4"))


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_another_axis_is_not_packed(axis: int, device: Device) -> None:
    nodes = [
        node("Xor", "a b", "x"),
        node("Cast", "x", "n", to=6),
        node("ReduceSum", "n axes", "y", keepdims=0),
    ]
    declared = {"a": ("?", [8, 16, 8]), "b": ("?", [16, 8])}
    model = model_of(nodes, declared, {"y": ("i4", [None] * 2)}, [tensor("axes", np.array([axis]))])
    a, b = bits((8, 16, 8), 1), bits((16, 8), 2)
    assert same(prepare(model, device).run([a, b])[0], (a ^ b).sum(axis).astype("i4"))


def test_a_repeated_last_axis_is_not_packed(device: Device) -> None:
    nodes = [
        node("Xor", "a b", "x"),
        node("Cast", "x", "n", to=6),
        node("ReduceSum", "n axes", "y", keepdims=0),
    ]
    declared = {"a": ("?", [4, 16]), "b": ("?", [4, 1])}
    model = model_of(nodes, declared, {"y": ("i4", [4])}, [tensor("axes", np.array([1]))])
    a, b = bits((4, 16), 1), bits((4, 1), 2)
    assert same(prepare(model, device).run([a, b])[0], (a ^ b).sum(1).astype("i4"))


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
