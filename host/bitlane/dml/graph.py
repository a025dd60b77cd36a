"""The description of a graph of operators, as DirectML has it: nodes, and edges by index.

Inert: it may be wrong. ``connections.connect`` decides that, when a graph is compiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from .created import Operator

__all__ = [
    "GraphDesc",
    "InputGraphEdgeDesc",
    "IntermediateGraphEdgeDesc",
    "OperatorGraphNodeDesc",
    "OutputGraphEdgeDesc",
]


@dataclass(frozen=True, slots=True)
class OperatorGraphNodeDesc:
    """``DML_OPERATOR_GRAPH_NODE_DESC``: an operator of ``Device.create_operator``."""

    operator: Operator
    name: str = ""


@dataclass(frozen=True, slots=True)
class InputGraphEdgeDesc:
    """``DML_INPUT_GRAPH_EDGE_DESC``: from an input of the graph to one of a node.

    ``name``: what errors call the graph's input, instead of its number.
    """

    graph_input_index: int
    to_node_index: int
    to_node_input_index: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class OutputGraphEdgeDesc:
    """``DML_OUTPUT_GRAPH_EDGE_DESC``: from an output of a node to one of the graph.

    ``name``: what errors call the graph's output, instead of its number.
    """

    from_node_index: int
    from_node_output_index: int
    graph_output_index: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class IntermediateGraphEdgeDesc:
    """``DML_INTERMEDIATE_GRAPH_EDGE_DESC``: from an output of a node to an input of another."""

    from_node_index: int
    from_node_output_index: int
    to_node_index: int
    to_node_input_index: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class GraphDesc:
    """``DML_GRAPH_DESC``: what ``Device.compile_graph`` makes one operator of.

    An input of the graph, and an output of a node, may have any number of edges; an input of a
    node and an output of the graph have one each. The tensors at both ends of an edge may differ
    in everything but TotalTensorSizeInBytes: then the same bytes are looked at in another way.
    """

    input_count: int
    output_count: int
    nodes: Sequence[OperatorGraphNodeDesc]
    input_edges: Sequence[InputGraphEdgeDesc]
    output_edges: Sequence[OutputGraphEdgeDesc]
    intermediate_edges: Sequence[IntermediateGraphEdgeDesc] = ()

    @classmethod
    def of(cls, operator: Operator) -> Self:
        """The graph of one operator, with the inputs and outputs of the operator."""
        inputs = [
            InputGraphEdgeDesc(place, 0, place, name)
            for place, (name, _) in enumerate(operator.desc.inputs)
        ]
        outputs = [
            OutputGraphEdgeDesc(0, place, place, name)
            for place, (name, _) in enumerate(operator.desc.outputs)
        ]
        return cls(len(inputs), len(outputs), [OperatorGraphNodeDesc(operator)], inputs, outputs)
