"""ONNX models for tests: written in a line, or random."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx.parser
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from bitlane.onnx.cut import cut_model
from bitlane.onnx.golden import reference_group
from bitlane.onnx.model import DeviceGroup
from bitlane.onnx.parse import read_model
from support.host.arrays import INTEGERS, random

Declared: TypeAlias = Mapping[str, tuple[str, Sequence[int | str | None]]]
"""NumPy's names of types, and shapes, by name of value."""

FLOATS = {"i2": "f2", "i4": "f4", "i8": "f8"}
SHAPES = [(), (1,), (4,), (3, 1), (3, 4), (1, 4), (2, 1, 4), (2, 3, 4)]
"""Shapes of which any two broadcast."""


def code(dtype: str) -> int:
    """Return ONNX's number of a type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def node(operator: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    """Return a node; ``inputs`` are names, separated by blanks."""
    return helper.make_node(operator, inputs.split(), [output], **attributes)


def tensor(name: str, array: NDArray[Any]) -> TensorProto:
    """Return an initializer."""
    return numpy_helper.from_array(array, name)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Declared,
    outputs: Declared,
    constants: Sequence[TensorProto] = (),
    *,
    opset: int = 28,
) -> ModelProto:
    """Return a model of ONNX's standard operators."""

    def infos(declared: Declared) -> list[ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, code(dtype), shape)
            for name, (dtype, shape) in declared.items()
        ]

    graph = helper.make_graph(nodes, "graph", infos(inputs), infos(outputs), constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def parsed(text: str, *functions: str, opset: int = 18) -> ModelProto:
    """Return the model of a graph, and of functions of the domain `own`, in ONNX's text."""
    head = f'<ir_version: 10, opset_import: ["": {opset}, "own": 1, "com.microsoft": 1]>'
    return onnx.parser.parse_model(" ".join([head, text, *functions]))


def golden(model: ModelProto, given: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the outputs of a model that is one group of a device, by the golden model."""
    whole = read_model(model)
    graph = cut_model(whole, None)
    (group,) = graph.groups
    assert isinstance(group, DeviceGroup)
    return reference_group(whole.proto, group, {**graph.constants, **given})


def made_up(seed: int) -> tuple[ModelProto, dict[str, NDArray[Any]]]:
    """Return a random graph of all operators, and values for its inputs.

    A value may be used any number of times, shapes broadcast, and an output may be an input.
    """
    choose = np.random.default_rng(seed)

    def one_of(options: Sequence[Any]) -> Any:
        return options[choose.integers(len(options))]

    given, constants, nodes = {}, [], []
    values: dict[str, tuple[str, tuple[int, ...]]] = {}
    for index, kind in enumerate(one_of([INTEGERS, ["u1"], ["i4"], ["?"]]) for _ in range(5)):
        dtype, shape, name = one_of([*kind, "?"]), one_of(SHAPES), f"x{index}"
        array = random(shape, dtype.replace("?", "u1"), seed + index)
        if dtype == "?":
            array = array % 2 == 1
        elif index % 2:
            array = (array % np.array(20, array.dtype)).astype(dtype)  # counts of shifts
        values[name] = (dtype, shape)
        if choose.integers(3):
            given[name] = array
        else:
            constants.append(tensor(name, np.asarray(array)))
    for index in range(choose.integers(1, 12)):
        a = one_of(list(values))
        dtype, shape = values[a]
        b = one_of([name for name in values if values[name][0] == dtype])
        new, attributes = dtype, {}
        if dtype[0] == "f" or choose.integers(6) == 0:
            inverse = {other: one for one, other in FLOATS.items()}
            signs = {x: ("i" if x[0] == "u" else "u") + x[1:] for x in INTEGERS}
            new = {**signs, **inverse, "?": "u1"}[dtype]
            new = FLOATS.get(new, new) if new != dtype and choose.integers(2) else new
            operator, attributes = "BitCast", {"to": code(new)}
        elif dtype == "?":
            operator = one_of(["Not", "And", "Or", "Xor", "Equal"])
        elif choose.integers(5) == 0:
            operator, new = "Equal", "?"
        else:
            logic = [f"Bitwise{name}" for name in ("Not", "And", "Or", "Xor")]
            operator = one_of([*logic, "BitShift", "BitShift"])
        if operator == "BitShift":
            attributes = {"direction": one_of(["LEFT", "RIGHT"])}
        one = operator == "BitCast" or operator.endswith("Not")
        nodes.append(node(operator, a if one else f"{a} {b}", f"y{index}", **attributes))
        values[f"y{index}"] = new, shape if one else np.broadcast_shapes(shape, values[b][1])
    last = f"y{len(nodes) - 1}"
    outputs = {last: values[last], **{x: values[x] for x in values if choose.integers(4) == 0}}
    inputs = {name: values[name] for name in given}
    return model_of(nodes, inputs, outputs, constants), given
