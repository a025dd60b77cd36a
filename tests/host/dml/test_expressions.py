"""Graphs as expressions: what is written down is what NumPy would have computed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType
from support.host.model_driver import ModelDriver

A = np.random.default_rng(1).integers(0, 2**32, (3, 5), np.uint32)
B = np.random.default_rng(2).integers(0, 32, (3, 5), np.uint32)
WORDS = BufferTensorDesc(DataType.UINT32, A.shape)
NOTHING: Any = None


@pytest.fixture
def graph() -> dml.Graph:
    return dml.Graph(dml.Device(ModelDriver()))


def pair(graph: dml.Graph) -> tuple[dml.Expression, dml.Expression]:
    return dml.input_tensor(graph, 0, WORDS), dml.input_tensor(graph, 1, WORDS)


@pytest.mark.parametrize(
    "program",
    [
        lambda a, b: a & b,
        lambda a, b: a | b,
        lambda a, b: a ^ b,
        lambda a, b: a << b,
        lambda a, b: a >> b,
        lambda a, b: (a ^ b) & ~(a | b),
    ],
)
def test_operators_are_numpys(graph: dml.Graph, program: Callable[[Any, Any], Any]) -> None:
    result = program(*pair(graph))
    (got,) = graph.device.run(graph.desc([result]), [A, B])
    assert np.array_equal(got, program(A, B))


def test_distances_of_rows_are_one_pass(graph: dml.Graph) -> None:
    a, b = pair(graph)
    distances = dml.reduce(dml.bit_count(a ^ b, DataType.UINT32), axes=[1])
    assert distances.output_desc == BufferTensorDesc(DataType.UINT32, [3, 1])
    lines = graph.compile([distances]).explain().splitlines()
    assert lines[1].startswith("COUNT_XOR SUM  3 x 5 of 32 bits")
    assert lines[2].startswith("fused          1 pass ")
    (got,) = graph.device.run(graph.desc([distances]), [A, B])
    assert np.array_equal(got, np.bitwise_count(A ^ B).sum(axis=1, keepdims=True))


def test_all_axes_are_reduced_if_none_is_named(graph: dml.Graph) -> None:
    a, b = pair(graph)
    total = dml.reduce(dml.bit_count(a & b, DataType.UINT32))
    (got,) = graph.device.run(graph.desc([total]), [A, B])
    assert got.tolist() == [[np.bitwise_count(A & B).sum()]]


def test_counts_are_bytes_unless_asked_for(graph: dml.Graph) -> None:
    a, _ = pair(graph)
    (got,) = graph.device.run(graph.desc([dml.bit_count(a)]), [A])
    assert got.dtype == np.uint8
    assert np.array_equal(got, np.bitwise_count(A))


def test_reinterpreting_repeats_turns_and_splits(graph: dml.Graph) -> None:
    row = dml.input_tensor(graph, 0, BufferTensorDesc(DataType.UINT32, [5]))
    a = dml.input_tensor(graph, 1, WORDS)
    difference = dml.reinterpret(row, DataType.UINT32, [3, 5], [0, 1]) ^ a
    halves = dml.reinterpret(difference, DataType.UINT16, [3, 5], [10, 2])
    turned = dml.reinterpret(difference, DataType.UINT32, [5, 3], [1, 5])
    got = graph.device.run(graph.desc([~turned, ~halves]), [A[1], A])
    assert np.array_equal(got[0], ~(A ^ A[1]).T)
    assert np.array_equal(got[1], ~(A ^ A[1]).astype(np.uint16))


def test_only_what_the_outputs_need_is_compiled(graph: dml.Graph) -> None:
    a, b = pair(graph)
    unused, used = a ^ b, ~a
    desc = graph.desc([used])
    assert (desc.input_count, len(desc.nodes), unused.graph) == (1, 1, graph)
    assert repr(graph) == "<bitlane.dml.Graph: operators: 2>"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda graph, a: a ^ 3, r"Graph\.BTensor is 3; expected of type Expression"),
        (
            lambda graph, a: a ^ dml.reinterpret(a, DataType.UINT32, [15]),
            r"BTensor\.DimensionCount is 1; expected 2",
        ),
        (
            lambda graph, a: dml.reinterpret(a, DataType.UINT64, [8]) ^ a,
            r"TotalTensorSizeInBytes is 60; expected at least 64",
        ),
        (lambda graph, a: dml.bit_not(NOTHING), r"Graph\.Input is None"),
        (lambda graph, a: graph.desc([NOTHING]), r"Graph\.Outputs is None; expected of type Exp"),
        (lambda graph, a: graph.compile([a]), r"Outputs is input 0; expected operators' outputs"),
        (lambda graph, a: dml.input_tensor(graph, -1, a.output_desc), r"Index is -1; expected 0"),
        (lambda graph, a: a and a, r"asked for its truth; expected & or \|"),
        (lambda graph, a: graph.compile([]), r"OutputCount is 0"),
        (lambda graph, a: a ^ pair(dml.Graph(graph.device))[0], r"is of another graph"),
        (lambda graph, a: dml.reduce(a, axes=["x"]), r"Axes is of type tuple; expected a list of"),
        (lambda graph, a: dml.Graph(NOTHING), r"Graph\.Device is None"),
    ],
)
def test_errors_come_where_the_mistake_is(
    graph: dml.Graph, action: Callable[[dml.Graph, dml.Expression], object], message: str
) -> None:
    a, _ = pair(graph)
    with pytest.raises(dml.DmlError, match=message) as caught:
        action(graph, a)
    assert "\n" not in str(caught.value)
