"""Operators that move, cast, choose and add up elements: each as onnx's reference computes it."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

from bitlane import Device
from bitlane.errors import ShapeError
from bitlane.onnx import OnnxError, prepare
from bitlane.onnx.cut import read_graph
from bitlane.onnx.nodes import newest_opset
from bitlane.onnx.operators import OPERATORS
from support.host.arrays import random, same
from support.host.onnx_models import code, golden, model_of, node, parsed, tensor
from support.host.refusals import refused

KINDS = ["?", "u1", "i2", "u4", "i8", "f2", "f4", "f8"]


class Case(NamedTuple):
    """A node of x, or of x and others, and its constant inputs by name."""

    operator: str
    shape: tuple[int, ...]
    constants: Mapping[str, Any] = {}
    attributes: Mapping[str, Any] = {}
    others: tuple[tuple[int, ...], ...] = ()
    first: int = 13
    """The first opset that has it."""

    @property
    def title(self) -> str:
        words = [self.operator, *map(str, self.constants.values()), *map(str, self.others)]
        return " ".join([*words, *map(str, self.attributes.values())])


def shape_of(*shape: int) -> dict[str, Any]:
    return {"shape": list(shape)}


def parts(starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> dict[str, Any]:
    given = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    return {name: x for name, x in given.items() if x is not None}


MOVES = [
    Case("Identity", (3, 4)),
    Case("Reshape", (3, 4), shape_of(2, 6)),
    Case("Reshape", (3, 4), shape_of(-1)),
    Case("Reshape", (3, 4), shape_of(0, 2, -1)),
    Case("Reshape", (), shape_of(1, 1)),
    Case("Reshape", (0, 4), shape_of(2, 0), {"allowzero": 1}, first=14),
    Case("Transpose", (2, 3, 4)),
    Case("Transpose", (2, 3, 4), {}, {"perm": [1, 0, 2]}),
    Case("Slice", (5, 6), parts([1, -4], [4, 100])),
    Case("Slice", (5, 6), parts([-1], [-100], [1], [-2])),
    Case("Slice", (5, 6), parts([100], [0], [-1], [-1])),
    Case("Slice", (5, 6), parts([2], [2], [0])),
    Case("Slice", (0, 6), parts([-1], [-(1 << 63)], [0], [-1])),
    Case("Concat", (2, 3), {}, {"axis": 0}, ((4, 3), (0, 3))),
    Case("Concat", (2, 3), {}, {"axis": -1}, ((2, 1), (2, 3))),
    Case("Concat", (2, 3), {}, {"axis": 1}),
    Case("Expand", (3, 1), shape_of(2, 1, 4)),
    Case("Expand", (3, 4), shape_of(1)),
    Case("Squeeze", (1, 3, 1)),
    Case("Squeeze", (1, 3, 1), {"axes": [-1]}),
    Case("Squeeze", (2, 3), {"axes": []}),
    Case("Unsqueeze", (3, 4), {"axes": [0, -1]}),
    Case("Unsqueeze", (3, 4), {"axes": [2, 0]}),
    Case("Gather", (5, 3), {"indices": [0, 2, 4, 1, 1, -1]}),
    Case("Gather", (5, 3), {"indices": [[2], [0]]}, {"axis": 1}),
    Case("Gather", (5, 3), {"indices": 2}, {"axis": -2}),
    Case("Gather", (5, 3), {"indices": [4, 3, 2]}),
    Case("Gather", (5, 3), {"indices": np.zeros((2, 0), np.int64)}),
]


def inputs_of(case: Case, kind: str) -> dict[str, NDArray[Any]]:
    names = ("x", "y", "z")
    shapes = (case.shape, *case.others)
    return {
        name: elements(shape, kind, seed)
        for seed, (name, shape) in enumerate(zip(names, shapes, strict=False))
    }


def elements(shape: tuple[int, ...], kind: str, seed: int) -> NDArray[Any]:
    if kind == "?":
        return np.asarray(random(shape, "u1", seed) % 2 == 1)
    return np.asarray(random(shape, kind.replace("f", "u"), seed)).view(kind)


def built(case: Case, kind: str, opset: int = 28) -> tuple[ModelProto, dict[str, NDArray[Any]]]:
    """Return the model of a case, and its inputs."""
    given = inputs_of(case, kind)
    constants = [tensor(name, np.array(x, np.int64)) for name, x in case.constants.items()]
    names = " ".join([*given, *case.constants])
    made = node(case.operator, names, "r", **case.attributes)
    declared = {name: (kind, list(x.shape)) for name, x in given.items()}
    model = model_of([made], declared, {"r": (kind, [])}, constants, opset=opset)
    return with_ranks(model, given), given


def with_ranks(model: ModelProto, given: dict[str, NDArray[Any]]) -> ModelProto:
    """Declare the ranks of the outputs, if onnx's reference can compute them."""
    try:
        results = ReferenceEvaluator(model).run(None, given)
    except (ValueError, IndexError, RuntimeError, TypeError):  # the device refuses it, too
        return model
    for info, result in zip(model.graph.output, results, strict=True):
        for _ in range(np.ndim(result)):
            info.type.tensor_type.shape.dim.add()
    return model


def expect_agreement(model: ModelProto, given: Mapping[str, Any], device: Device) -> None:
    """Expect that the output on ``device`` is that of onnx's reference, bit by bit."""
    (wanted,) = ReferenceEvaluator(model).run(None, given)
    kind = helper.tensor_dtype_to_np_dtype(model.graph.output[0].type.tensor_type.elem_type)
    assert same(prepare(model, device).run(given)[0], np.asarray(wanted, kind)), model


SOME = [(case, KINDS[(3 * at + step) % 8]) for at, case in enumerate(MOVES) for step in (0, 4)]
"""Each move with two types; each type with several moves."""


@pytest.mark.parametrize(
    ("case", "kind"), SOME, ids=[f"{case.title} {kind}" for case, kind in SOME]
)
def test_elements_are_moved_bit_by_bit(case: Case, kind: str, device: Device) -> None:
    expect_agreement(*built(case, kind), device)


@pytest.mark.slow
@pytest.mark.parametrize("case", MOVES, ids=lambda case: case.title)
def test_elements_are_moved_in_every_opset(case: Case, device: Device) -> None:
    for opset in sorted({*OPERATORS[case.operator].versions, newest_opset()}):
        if opset >= case.first:
            expect_agreement(*built(case, "i4", opset), device)


@pytest.mark.parametrize("case", MOVES, ids=lambda case: case.title)
def test_a_view_of_a_result_is_a_value_of_its_own(case: Case, device: Device) -> None:
    model, given = built(case, "u2")
    names = {x.name for x in model.graph.input}
    inner, outer = node("BitwiseNot", "x", "n"), node("BitwiseNot", "r", "s")
    moved = model.graph.node[0]
    moved.input[0] = "n"
    nodes = [inner, moved, outer]
    declared = {name: ("u2", list(given[name].shape)) for name in given}
    outputs: Any = {name: ("u2", []) for name in ("r", "s", "n")}
    both = model_of(nodes, declared, outputs, list(model.graph.initializer))
    both = with_ranks(both, given)
    assert names == set(given)
    wanted = ReferenceEvaluator(both).run(None, given)
    prepared = prepare(both, device)
    for got, expected in zip(prepared.run(given), wanted, strict=True):
        assert same(got, np.asarray(expected))
    arrays = prepared.arrays(given)
    for number in range(3):
        before = [x.get() for x in arrays]
        if arrays[number].size:
            arrays[number] ^= 1
        for other in {0, 1, 2} - {number}:
            assert same(arrays[other].get(), before[other])


CASTS = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"]


def some(items: Iterable[tuple[Any, ...]], every: int) -> list[Any]:
    """Return parameters of which one in so many is quick."""
    return [
        pytest.param(*item, marks=[] if number % every == 0 else [pytest.mark.slow])
        for number, item in enumerate(items)
    ]


@pytest.mark.parametrize(("kind", "to"), some(product(CASTS, CASTS), 4))
def test_casts_between_integers_and_bool(kind: str, to: str, device: Device) -> None:
    cast = node("Cast", "x", "y", to=code(to))
    model = model_of([cast], {"x": (kind, [40])}, {"y": (to, [40])})
    x = elements((40,), kind, 1)
    x[:3] = [0, 1, 0]
    expect_agreement(model, {"x": x}, device)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_a_float_is_true_unless_it_is_zero(kind: str, device: Device) -> None:
    model = model_of([node("Cast", "x", "y", to=9)], {"x": (kind, [6])}, {"y": ("?", [6])})
    x = np.array([0, -0.0, np.nan, np.inf, 5e-8, -1], kind)
    assert prepare(model, device).run([x])[0].tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_where_chooses_bits(kind: str, device: Device) -> None:
    declared = {"c": ("?", [3, 1]), "x": (kind, [3, 4]), "y": (kind, [4])}
    model = model_of([node("Where", "c x y", "r")], declared, {"r": (kind, [3, 4])})
    c = np.array([[1], [0], [255]], np.uint8).view(bool)
    x, y = elements((3, 4), kind, 1), elements((4,), kind, 2)
    (got,) = prepare(model, device).run([c, x, y])
    assert got.tobytes() == np.where([[True], [False], [True]], x, y).tobytes()


SUMS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"axes": [1]}, {}),
    ({"axes": [-1, 0]}, {"keepdims": 0}),
    ({"axes": np.zeros(0, np.int64)}, {"noop_with_empty_axes": 1}),
]


SUMMED = [
    (shape, kind, *case)
    for case, kind, shape in product(SUMS, ("u4", "i4", "u8", "i8"), ((3, 5, 4), (2, 0, 3)))
]


@pytest.mark.parametrize(("shape", "kind", "constants", "attributes"), some(SUMMED, 5))
def test_integers_are_added_modulo_their_range(
    shape: tuple[int, ...],
    kind: str,
    constants: dict[str, Any],
    attributes: dict[str, Any],
    device: Device,
) -> None:
    model, given = built(Case("ReduceSum", shape, constants, attributes), kind)
    expect_agreement(model, given, device)


@pytest.mark.parametrize("kind", ["u4", "i4", "u8", "i8"])
def test_truth_values_are_counted_in_one_pass(kind: str, device: Device) -> None:
    name = {"u": "uint", "i": "int"}[kind[0]] + str(8 * int(kind[1]))
    model = parsed(f"""g (bool[8,128] a, bool[128] b) => ({name}[8] y) <int64[1] axes = {{1}}> {{
        x = Xor(a, b)
        n = Cast <to = {code(kind)}>(x)
        y = ReduceSum <keepdims = 0>(n, axes)
    }}""")
    a, b = elements((8, 128), "?", 1), elements((128,), "?", 2)
    prepared = prepare(model, device)
    lines = prepared.explain([a, b]).splitlines()
    assert lines[1].startswith("COUNT_XOR SUM ")
    assert same(prepared.run([a, b])[0], (a ^ b).sum(1).astype(kind))
    given = {"a": a, "b": b}
    assert same(golden(model, given)[0], (a ^ b).sum(1).astype(kind))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Case("Reshape", (3, 4), shape_of(5)), r"\(Reshape\): shape: .*has 12 elements"),
        (Case("Reshape", (3, 4), shape_of(1, 1, 0)), r"axis 2 of \(3, 4\) has no length"),
        (Case("Expand", (3, 4), shape_of(5)), r"\(Expand\): .*\(3, 4\) and \(5,\)"),
        (Case("Squeeze", (3, 1), {"axes": [0]}), r"axes: \(0,\) of \(3, 1\); expected axes of"),
        (Case("Unsqueeze", (3,), {"axes": [3]}), r"\(Unsqueeze\): axis: 3; expected -2 to 1"),
        (Case("Transpose", (3, 4), {}, {"perm": [0]}), r"\(Transpose\): axes: \(0,\); expected"),
        (Case("Slice", (3,), parts([-9], [-99], [0], [-1])), "start: -9 with step -1 on an axis"),
        (
            Case("Slice", (3,), parts([-1], [(1 << 63) - 1], [0], [-1])),
            "end: 9223372036854775807 with step -1; expected 2 for no elements, or -4 for all",
        ),
        (Case("Slice", (3,), parts([1], [(1 << 31) - 1], [0], [-2])), "end: 2147483647 with"),
        (Case("Squeeze", (3, 1), {"axes": []}), r"axes: none of \(3, 1\); expected one at least"),
        (Case("Slice", (3,), parts([0], [1], [1])), r"\(Slice\): axis: 1; expected -1 to 0"),
        (Case("Concat", (2, 3), {}, {"axis": 0}, ((2, 4),)), "alike but for axis 0"),
        (Case("Concat", (2, 3), {}, {"axis": 2}, ((2, 3),)), r"axis: 2; expected -2 to 1"),
        (Case("Gather", (3, 2), {"indices": [0, 3]}), "indices: 3 on axis 0 of 3; expected -3"),
        (Case("Gather", (0, 2), {"indices": [0]}), "indices: 0 on axis 0 of 0; it has no elem"),
    ],
    ids=lambda x: x.title if isinstance(x, Case) else "",
)
def test_shapes_that_do_not_fit_are_refused(case: Case, message: str, device: Device) -> None:
    model, given = built(case, "u1")
    # Nothing is known before the model runs.
    for x in model.graph.input:
        for axis in x.type.tensor_type.shape.dim:
            axis.Clear()
    prepared = prepare(model, device)
    with refused(device, ShapeError, message, sent=True):
        prepared.run(given)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (Case("Reshape", (3,), shape_of(-1, -1)), r"shape \(-1, -1\); expected lengths, and -1"),
        (Case("Reshape", (3,), shape_of(-2)), r"shape \(-2,\); expected lengths, and -1 once"),
        (
            Case("Reshape", (0, 3), shape_of(-1, 0), {"allowzero": 1}),
            r"with allowzero; expected no -1 beside a 0",
        ),
        (Case("Expand", (3,), shape_of(-1)), r"shape \(-1,\); expected 0 or more"),
        (Case("Slice", (3,), parts([0], [1], [0], [0])), r"steps \(0,\); expected none of 0"),
        (Case("Slice", (3,), parts([0, 0], [1])), "2, 1, 2 and 2 starts, ends, axes and steps"),
        (Case("Squeeze", (1,), {"axes": 0}), r"axes of int64 and shape \(\); expected integers"),
    ],
    ids=lambda x: x.title if isinstance(x, Case) else "",
)
def test_settings_that_are_wrong_are_refused(case: Case, message: str, device: Device) -> None:
    model, _ = built(case, "u1")
    with refused(device, OnnxError, message):
        prepare(model, device)


@pytest.mark.parametrize("case", [case for case in MOVES if case.constants][::3])
def test_settings_that_are_computed_are_refused(case: Case, device: Device) -> None:
    model, _ = built(case, "u1")
    constant = model.graph.initializer.pop()
    model.graph.input.append(
        model_of([], {constant.name: ("i8", list(constant.dims))}, {"x": ("u1", [])}).graph.input[0]
    )
    with pytest.raises(OnnxError, match="is computed, or an input of the model; expected an init"):
        prepare(model, device)


def test_sums_of_the_host_are_joined_and_read_again(device: Device) -> None:
    model = parsed("""g (uint32[2,9] a, uint32[3,9] b) => (uint32[5,2] y)
    <int64[1] axes = {1}, uint32 k = {85}> {
        s = ReduceSum(a, axes)
        t = ReduceSum(b, axes)
        c = Concat <axis = 0>(s, t)
        x = BitwiseXor(c, k)
        y = Concat <axis = 1>(x, x)
    }""")
    a, b = elements((2, 9), "u4", 1), elements((3, 9), "u4", 2)
    sums = np.concatenate([a.sum(1, "u4"), b.sum(1, "u4")])[:, None] ^ np.uint32(0x55)
    prepared = prepare(model, device)
    assert same(prepared.run([a, b])[0], np.concatenate([sums, sums], 1))
    assert "host       adds up" in prepared.explain([a, b])


def test_joined_parts_without_elements_are_read_again(device: Device) -> None:
    text = "g (bool[2,0] a) => (bool[4,0] y) { c = Concat <axis = 0>(a, a) y = Not(c) }"
    prepared = prepare(parsed(text), device)
    a = np.zeros((2, 0), bool)
    assert same(prepared.run([a])[0], np.zeros((4, 0), bool))
    assert "COPY     2 x 0 of 8 bits" in prepared.explain([a])


@pytest.mark.parametrize(
    ("operator", "kind", "to"),
    [
        *(
            ("Cast", kind, to)
            for kind, to in (("f4", 2), ("u1", 1), ("f4", 11), ("f8", 1), ("?", 10))
        ),
        *(("ReduceSum", kind, None) for kind in ("f2", "f4", "f8")),
    ],
)
def test_arithmetic_is_refused(operator: str, kind: str, to: int | None, device: Device) -> None:
    attributes = {} if to is None else {"to": to}
    made = node(operator, "x", "y", **attributes)
    with refused(device, OnnxError, rf"\({operator}\): .*which takes arithmetic"):
        prepare(model_of([made], {"x": (kind, [4])}, {"y": ("u1", [4])}), device)


# --- the golden model -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "function", "kind", "first"),
    [
        ("And", np.bitwise_and, "?", 7),
        ("Or", np.bitwise_or, "?", 7),
        ("Xor", np.bitwise_xor, "?", 7),
        ("Equal", np.equal, "i4", 7),
        ("BitwiseAnd", np.bitwise_and, "u2", 18),
        ("BitwiseOr", np.bitwise_or, "i8", 18),
        ("BitwiseXor", np.bitwise_xor, "i1", 18),
        ("LEFT", lambda a, b: a << b, "u1", 11),
        ("RIGHT", lambda a, b: np.where(b < 8, a >> b % 8, 0).astype("u1"), "u1", 11),
    ],
)
def test_operators_of_two_inputs_in_every_opset(
    operator: str, function: Any, kind: str, first: int
) -> None:
    a, b = np.array([0, 1, 1, 0]).astype(kind), np.array([[0], [1]]).astype(kind)
    made = node(operator, "a b", "y")
    if first == 11:
        a, b = np.full(4, 0x81, "u1"), np.array([[0, 1, 7, 8]] * 2, "u1")
        made = node("BitShift", "a b", "y", direction=operator)
    wanted = np.asarray(function(a, b))
    declared = {"a": (kind, a.shape), "b": (kind, b.shape)}
    for opset in range(first, newest_opset() + 1):
        model = model_of([made], declared, {"y": (str(wanted.dtype), [2, 4])}, opset=opset)
        read_graph(model)
        assert same(golden(model, {"a": a, "b": b})[0], wanted), opset


def test_both_names_of_the_domain_and_any_byte_order() -> None:
    model = model_of([node("BitwiseNot", "a", "y")], {"a": ("u2", [2])}, {"y": ("u2", [2])})
    model.graph.node[0].domain = model.opset_import[0].domain = "ai.onnx"
    got = golden(model, {"a": np.array([1, 2], ">u2")})[0]
    assert same(got, np.array([0xFFFE, 0xFFFD], np.uint16))
