"""ONNX models for tests: written in a line, or random, also with nodes that a device lacks."""

from collections.abc import Callable, Mapping, Sequence
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


Type: TypeAlias = tuple[str, tuple[int, ...]]

NUMBERS = ("i4", "i8")
"""Types in which ONNX Runtime computes arithmetic as well as bits."""

FOREIGN = ("Add", "Sub", "Mul", "Max", "Min")
COMPARED = ("Less", "Greater", "LessOrEqual")


class Mixed:
    """A model that grows by random nodes of values of any shape."""

    def __init__(self, seed: int) -> None:
        self._choose = np.random.default_rng(seed)
        self._seed = seed
        self.given: dict[str, NDArray[Any]] = {}
        self.constants: list[TensorProto] = []
        self.nodes: list[NodeProto] = []
        self.values: dict[str, Type] = {}

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[self._choose.integers(len(options))]

    def add_input(self) -> None:
        dtype, shape = self.one_of([*NUMBERS, *NUMBERS, "?", "u1", "u4"]), self.one_of(SHAPES)
        name = f"x{len(self.given) + len(self.constants)}"
        array = random(shape, dtype.replace("?", "u1"), self._seed + len(self.values))
        array = array % 2 == 1 if dtype == "?" else array
        if self._choose.integers(4):
            self.given[name] = np.asarray(array)
        else:
            self.constants.append(tensor(name, np.asarray(array)))
        self.values[name] = dtype, shape

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(tensor(name, np.asarray(value)))
        return name

    def add_node(self) -> None:
        first = self.one_of(list(self.values)[-6:])
        dtype, _ = self.values[first]
        kinds = [self._move, self._bits, self._bits, self._bits, self._cast]
        if dtype in NUMBERS:
            kinds += [self._foreign, self._foreign, self._sum]
        self.one_of(kinds)(first)

    def _append(self, operator: str, inputs: str, made: Type, **attributes: Any) -> None:
        name = f"y{len(self.nodes)}"
        self.nodes.append(node(operator, inputs, name, **attributes))
        self.values[name] = made

    def _partner(self, first: str) -> tuple[str, tuple[int, ...]]:
        """Return a value that ``first`` broadcasts with, of its type, and the shape of both."""
        dtype, shape = self.values[first]
        options = []
        for name, (other, its_shape) in self.values.items():
            if other == dtype:
                try:
                    both = np.broadcast_shapes(shape, its_shape)
                except ValueError:
                    continue
                options.append((name, both))
        pair: tuple[str, tuple[int, ...]] = self.one_of(options)
        return pair

    def _foreign(self, first: str) -> None:
        dtype, shape = self.values[first]
        if self._choose.integers(3) == 0:
            self._append(self.one_of(["Neg", "Abs"]), first, (dtype, shape))
            return
        second, both = self._partner(first)
        if self._choose.integers(4) == 0:
            self._append(self.one_of(COMPARED), f"{first} {second}", ("?", both))
        else:
            self._append(self.one_of(FOREIGN), f"{first} {second}", (dtype, both))

    def _bits(self, first: str) -> None:
        dtype, shape = self.values[first]
        second, both = self._partner(first)
        names = ["And", "Or", "Xor"] if dtype == "?" else ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]
        if dtype[0] == "u" and self._choose.integers(3) == 0:
            count = self.constant(np.array(self._choose.integers(8), dtype))
            direction = self.one_of(["LEFT", "RIGHT"])
            self._append("BitShift", f"{first} {count}", (dtype, shape), direction=direction)
        elif self._choose.integers(4) == 0:
            self._append("Not" if dtype == "?" else "BitwiseNot", first, (dtype, shape))
        elif dtype in NUMBERS and self._choose.integers(4) == 0:
            self._append("Equal", f"{first} {second}", ("?", both))
        elif dtype in NUMBERS and (truths := [x for x, t in self.values.items() if t[0] == "?"]):
            truth = self.one_of(truths)
            try:
                whole = np.broadcast_shapes(both, self.values[truth][1])
            except ValueError:
                return
            self._append("Where", f"{truth} {first} {second}", (dtype, whole))
        else:
            self._append(self.one_of(names), f"{first} {second}", (dtype, both))

    def _cast(self, first: str) -> None:
        to = self.one_of([*NUMBERS, "?", "u1", "u4"])
        self._append("Cast", first, (to, self.values[first][1]), to=code(to))

    def _sum(self, first: str) -> None:
        dtype, shape = self.values[first]
        if not shape:
            return
        # ONNX Runtime adds integers up as floats, which are exact while they are small.
        small = self.constant(np.array(255, dtype))
        self._append("BitwiseAnd", f"{first} {small}", (dtype, shape))
        first = list(self.values)[-1]
        axis = int(self._choose.integers(len(shape)))
        axes = self.constant(np.array([axis], np.int64))
        made = dtype, tuple(1 if at == axis else n for at, n in enumerate(shape))
        self._append("ReduceSum", f"{first} {axes}", made)

    def _move(self, first: str) -> None:
        dtype, shape = self.values[first]
        moves: list[Callable[[str, str, tuple[int, ...]], None]] = [self._reshape, self._unsqueeze]
        if shape:
            moves += [self._transpose, self._slice, self._concat, self._gather]
        if len(shape) < 4:
            self.one_of(moves)(first, dtype, shape)

    def _reshape(self, first: str, dtype: str, shape: tuple[int, ...]) -> None:
        wanted = [*shape[1:], *shape[:1]]
        name = self.constant(np.array(wanted, np.int64))
        self._append("Reshape", f"{first} {name}", (dtype, tuple(wanted)))

    def _unsqueeze(self, first: str, dtype: str, shape: tuple[int, ...]) -> None:
        name = self.constant(np.array([0], np.int64))
        self._append("Unsqueeze", f"{first} {name}", (dtype, (1, *shape)))

    def _transpose(self, first: str, dtype: str, shape: tuple[int, ...]) -> None:
        self._append("Transpose", first, (dtype, shape[::-1]))

    def _slice(self, first: str, dtype: str, shape: tuple[int, ...]) -> None:
        start, end, step = self.one_of([(0, 1, 1), (1, 99, 1), (-1, -99, -1), (0, 99, 2)])
        length = len(range(shape[0])[slice(start, end, step)])
        if length:
            names = [self.constant(np.array([x], np.int64)) for x in (start, end, 0, step)]
            made = dtype, (length, *shape[1:])
            self._append("Slice", " ".join([first, *names]), made)

    def _concat(self, first: str, dtype: str, shape: tuple[int, ...]) -> None:
        alike = [name for name, made in self.values.items() if made == (dtype, shape)]
        made = dtype, (2 * shape[0], *shape[1:])
        self._append("Concat", f"{first} {self.one_of(alike)}", made, axis=0)

    def _gather(self, first: str, dtype: str, shape: tuple[int, ...]) -> None:
        indices = self._choose.integers(-shape[0], shape[0], 3)
        name = self.constant(indices.astype(np.int64))
        self._append("Gather", f"{first} {name}", (dtype, (3, *shape[1:])), axis=0)


def mixed(seed: int, most: int = 16) -> tuple[ModelProto, dict[str, NDArray[Any]]]:
    """Return a random model with nodes that a device lacks, and values for its inputs."""
    made = Mixed(seed)
    for _ in range(4):
        made.add_input()
    for _ in range(most):
        made.add_node()
    last = list(made.values)[-1]
    chosen = [name for name in made.values if made.one_of([False, False, False, True])]
    outputs = {name: made.values[name] for name in dict.fromkeys([last, *chosen])}
    inputs = {name: made.values[name] for name in made.given}
    return model_of(made.nodes, inputs, outputs, made.constants, opset=18), made.given
