"""Graphs of DirectML's operators: of one, of distances of rows, and of any. No tests here."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bitlane import dml
from bitlane.dml import (
    BufferTensorDesc,
    DataType,
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OperatorGraphNodeDesc,
    OutputGraphEdgeDesc,
    ReduceFunction,
    ReduceOperatorDesc,
    TensorFlags,
)
from support.host.dml_bench import COUNT, NOT, XOR

WORDS = BufferTensorDesc(DataType.UINT32, [4, 8])
SUMS = BufferTensorDesc(DataType.UINT32, [4, 1])
OWNED = BufferTensorDesc(DataType.UINT32, [4, 8], flags=TensorFlags.OWNED_BY_DML)
ROWS = ReduceOperatorDesc(ReduceFunction.SUM, WORDS, SUMS, (1,))
DISTANCES = [XOR(WORDS, WORDS, WORDS), COUNT(WORDS, WORDS), ROWS]
"""Logic, count and sum: one behind the other they are Hamming distances of rows."""

A = np.random.default_rng(3).integers(0, 2**32, (4, 8), np.uint32)
B = np.random.default_rng(4).integers(0, 2**32, (4, 8), np.uint32)

To, Out, Via = InputGraphEdgeDesc, OutputGraphEdgeDesc, IntermediateGraphEdgeDesc
ONE = [NOT(WORDS, WORDS)]
PLAIN = [To(0, 0, 0), Out(0, 0, 0)]
NOTHING: Any = None


def desc(device: dml.Device, nodes: Sequence[Any], *edges: Any) -> GraphDesc:
    """Return a graph of ``nodes``, with the inputs and outputs that ``edges`` name."""
    operators = [OperatorGraphNodeDesc(device.create_operator(node)) for node in nodes]
    arriving = [edge for edge in edges if isinstance(edge, To)]
    leaving = [edge for edge in edges if isinstance(edge, Out)]
    between = [edge for edge in edges if isinstance(edge, Via)]
    inputs = 1 + max([edge.graph_input_index for edge in arriving], default=-1)
    outputs = 1 + max([edge.graph_output_index for edge in leaving], default=0)
    return GraphDesc(inputs, outputs, operators, arriving, leaving, between)


def distances(device: dml.Device, *more: Any) -> GraphDesc:
    """Return a graph of distances of rows, with ``more`` edges behind it."""
    edges = (To(0, 0, 0), To(1, 0, 1), Via(0, 0, 1, 0), Via(1, 0, 2, 0), Out(2, 0, 0))
    return desc(device, DISTANCES, *edges, *more)


def run(graph: GraphDesc, device: dml.Device, *inputs: Any) -> list[Any]:
    """Run a graph on inputs of NumPy arrays; return the content of each output."""
    return list(device.run(graph, inputs))
