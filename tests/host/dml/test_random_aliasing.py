"""Random graphs whose inputs and outputs lie in one buffer: refused, or right in every byte."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType
from bitlane.dml.operators import OPERATOR_DESCS, NodeDesc
from support.host.dml_graphs import Out, To, Via, desc
from support.host.model_driver import ModelDriver
from support.seeds import seeds

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

SIZE = 64
"""Bytes of every tensor."""

OFFSETS = (0, 16, 64, 128)
"""Places of tensors in the buffer: alone, in place of one another, and overlapping in part."""

LAYOUTS: dict[tuple[DataType, tuple[int, ...]], list[tuple[int, ...]]] = {
    (DataType.UINT8, (8, 8)): [(8, 1), (1, 8), (0, 1), (1, 0), (0, 0), (4, 1)],
    (DataType.UINT8, (4, 16)): [(16, 1), (1, 4), (0, 1), (1, 0)],
    (DataType.UINT8, (64,)): [(1,), (0,)],
    (DataType.UINT16, (4, 8)): [(8, 1), (1, 4), (0, 1), (1, 0)],
    (DataType.UINT32, (4, 4)): [(4, 1), (1, 4), (0, 1), (1, 0), (2, 1)],
}
"""Strides of tensors by type and sizes, the packed ones first. Outputs take those without gaps."""


@dataclass(frozen=True)
class Case:
    """A graph, and the place of each of its inputs and outputs in the buffer."""

    nodes: list[NodeDesc]
    sources: list[list[tuple[bool, int]]]
    """Sources of each node's inputs: the number of an input of the graph (True), or of a node."""
    results: list[int]
    """The nodes that write the outputs of the graph."""
    inputs: list[int]
    outputs: list[int]


def draw(random: np.random.Generator) -> Case:
    """Return a graph of one to three nodes, which reads few inputs on many ports."""
    nodes: list[NodeDesc] = []
    sources: list[list[tuple[bool, int]]] = []
    count, used = random.integers(1, 4), [0] * random.integers(1, 3)
    for number in range(count):
        data_type, sizes = list(LAYOUTS)[int(random.integers(len(LAYOUTS)))]
        layouts = LAYOUTS[data_type, sizes]
        kind: Any = list(OPERATOR_DESCS.values())[int(random.integers(len(OPERATOR_DESCS)))]
        if data_type is DataType.UINT16 and kind.op.counts:
            kind = dml.ElementWiseBitNotOperatorDesc
        tensors, origins = [], []
        for _ in range(2 if kind.op.reads_b else 1):
            inner = bool(number) and random.random() < 0.6
            last = number if inner else len(used)
            origins.append((not inner, int(random.integers(last))))
            tensors.append(_tensor(data_type, sizes, _pick(random, layouts)))
        whole = [x for x in layouts if _reach(sizes, x) * data_type.itemsize == SIZE]
        nodes.append(kind(*tensors, _tensor(data_type, sizes, _pick(random, whole))))
        sources.append(origins)
    read = {source for each in sources for outer, source in each if not outer}
    results = [k for k in range(count) if k not in read or random.random() < 0.2]
    results += [k for k in results if random.random() < 0.2]
    places = [int(random.choice(OFFSETS, p=(0.6, 0.1, 0.15, 0.15))) for _ in range(9)]
    return Case(nodes, sources, results, places[: len(used)], places[len(used) :][: len(results)])


def _pick(random: np.random.Generator, layouts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return layouts[0] if random.random() < 0.5 else layouts[int(random.integers(len(layouts)))]


def _reach(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))


def _tensor(
    data_type: DataType, sizes: tuple[int, ...], strides: tuple[int, ...]
) -> BufferTensorDesc:
    return BufferTensorDesc(data_type, sizes, strides, total_tensor_size_in_bytes=SIZE)


def _elements(tensor: BufferTensorDesc, memory: Bytes) -> Any:
    """Return the elements of ``tensor`` in ``memory``, which NumPy shows."""
    strides = [step * tensor.data_type.itemsize for step in tensor.element_strides]
    return np.ndarray(tensor.sizes, tensor.data_type.dtype, memory, strides=strides)


def expected(case: Case, before: Bytes) -> Bytes:
    """Return the buffer after the graph, which NumPy computes from the bytes before it."""
    functions: dict[str, Any] = {
        "AND": np.bitwise_and,
        "OR": np.bitwise_or,
        "XOR": np.bitwise_xor,
        "NOT": np.bitwise_not,
        "COUNT": np.bitwise_count,
        "SHIFT_LEFT": lambda a, b: a << b % (8 * b.itemsize),
        "SHIFT_RIGHT": lambda a, b: a >> b % (8 * b.itemsize),
    }
    inputs = [before[start : start + SIZE].copy() for start in case.inputs]
    values: list[Bytes] = []
    for node, sources in zip(case.nodes, case.sources, strict=True):
        assert isinstance(node, tuple(OPERATOR_DESCS.values()))
        memories = [inputs[k] if outer else values[k] for outer, k in sources]
        operands = [
            _elements(tensor, memory)
            for (_, tensor), memory in zip(node.inputs, memories, strict=True)
        ]
        memory = np.zeros(SIZE, np.uint8)
        _elements(node.output_tensor, memory)[...] = functions[node.op.name](*operands)
        values.append(memory)
    after = before.copy()
    for start, node_number in zip(case.outputs, case.results, strict=True):
        after[start : start + SIZE] = values[node_number]
    return after


def record(device: dml.Device, case: Case, buffer: dml.Buffer) -> dml.CommandList:
    """Record a dispatch of the graph of ``case``, which is initialized here."""
    edges: list[Any] = [Out(node, 0, place) for place, node in enumerate(case.results)]
    used = sorted({k for each in case.sources for outer, k in each if outer})
    for number, sources in enumerate(case.sources):
        for port, (outer, source) in enumerate(sources):
            to = (number, port)
            edges.append(To(used.index(source), *to) if outer else Via(source, 0, *to))
    operator = device.compile_graph(desc(device, case.nodes, *edges))
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    initializer = device.create_operator_initializer([operator])
    recorder.record_dispatch(commands, initializer, device.create_binding_table(initializer))
    device.execute(commands)
    commands.reset()
    table = device.create_binding_table(operator)
    table.bind_inputs([BufferBinding(buffer, case.inputs[k], SIZE) for k in used])
    table.bind_outputs([BufferBinding(buffer, start, SIZE) for start in case.outputs])
    recorder.record_dispatch(commands, operator, table)
    return commands


def is_right(case: Case, seed: int) -> bool:
    """Return whether the graph of ``case`` is accepted; expect NumPy's bytes then."""
    driver = ModelDriver()
    with dml.Device(driver) as device:
        buffer = device.create_buffer(256)
        before = np.random.default_rng(seed).integers(0, 256, buffer.size_in_bytes, np.uint8)
        buffer.write(before)
        try:
            commands = record(device, case, buffer)
        except dml.DmlError:
            assert np.array_equal(buffer.read(), before), f"seed {seed}: {case}"
            return False
        device.execute(commands)
        different = np.flatnonzero(buffer.read() != expected(case, before))
    assert not different.size, f"seed {seed}: bytes {different[:8]} of {case}"
    return True


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_graphs_over_their_own_inputs_are_refused_or_right(seed: int) -> None:
    accepted = 0
    for number in range(seed * 50, (seed + 1) * 50):
        accepted += is_right(draw(np.random.default_rng(number)), number)
    assert 0 < accepted < 50
