"""Graphs of operators as DirectML has them: nodes, edges by index, and what each edge demands."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from numbers import Integral
from typing import Self

from ..errors import DmlError
from .operators import NamedTensors, NodeDesc, Operator
from .refusals import expect_type
from .tensor import BufferTensorDesc


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


_KINDS = {
    "InputEdges": InputGraphEdgeDesc,
    "OutputEdges": OutputGraphEdgeDesc,
    "IntermediateEdges": IntermediateGraphEdgeDesc,
}


@dataclass(frozen=True, slots=True)
class Port:
    """The source of a tensor: output ``index`` of ``node``; for None, an input of the graph."""

    node: int | None
    index: int


@dataclass(frozen=True, slots=True)
class Connections:
    """A graph that follows every rule."""

    nodes: tuple[NodeDesc, ...]
    operands: tuple[tuple[Port, ...], ...]
    """The sources of the inputs of each node."""
    results: tuple[Port, ...]
    """The sources of the graph's outputs."""
    order: tuple[int, ...]
    """The nodes in an order in which each follows the nodes that it reads."""
    inputs: NamedTensors
    """The name of each input of the graph, and the widest tensor that its readers declare."""
    readers: tuple[NamedTensors, ...]
    """Name and tensor of every input of a node that reads each input of the graph."""
    outputs: NamedTensors


def connect(graph: GraphDesc) -> Connections:
    """Follow the edges of ``graph``. Raises ``DmlError`` at the first rule that it breaks."""
    nodes = _nodes(graph)
    for field in _KINDS:
        _check_edges(graph, field, nodes)
    operands = _operands(graph, nodes)
    outputs = _outputs(graph)
    _check_leaving(graph, nodes)
    inputs, readers = _inputs(graph, nodes)
    for edge in graph.intermediate_edges:
        _check_tensors(nodes, edge)
    return Connections(
        nodes,
        operands,
        tuple([Port(edge.from_node_index, edge.from_node_output_index) for edge in outputs]),
        _in_order(operands),
        inputs,
        readers,
        tuple(
            [
                (
                    edge.name or f"GraphOutputs[{place}]",
                    nodes[edge.from_node_index].outputs[edge.from_node_output_index][1],
                )
                for place, edge in enumerate(outputs)
            ]
        ),
    )


def _nodes(graph: GraphDesc) -> tuple[NodeDesc, ...]:
    """Check the types of all lists; require a node and an output. Return the nodes."""
    expect_type("CompileGraph", "Desc", graph, GraphDesc)
    for field, count, least in (
        ("InputCount", graph.input_count, 0),
        ("OutputCount", graph.output_count, 1),
    ):
        expect_type("GraphDesc", field, count, Integral)
        if count < least:
            raise DmlError("GraphDesc", field, count, f"{least} or more")
    lists = {"Nodes": OperatorGraphNodeDesc, **_KINDS}
    values = (graph.nodes, graph.input_edges, graph.output_edges, graph.intermediate_edges)
    for (field, kind), value in zip(lists.items(), values, strict=True):
        expect_type("GraphDesc", field, value, Sequence)
        for place, each in enumerate(value):
            expect_type("GraphDesc", f"{field}[{place}]", each, kind)
    for place, node in enumerate(graph.nodes):
        expect_type(f"Nodes[{place}]", "Operator", node.operator, Operator)
    return tuple([node.operator.desc for node in graph.nodes])


def _check_edges(graph: GraphDesc, kind: str, nodes: Sequence[NodeDesc]) -> None:
    """Both ends of every edge exist."""
    edges: Sequence[object] = {
        "InputEdges": graph.input_edges,
        "OutputEdges": graph.output_edges,
        "IntermediateEdges": graph.intermediate_edges,
    }[kind]
    for place, edge in enumerate(edges):
        name = f"{kind}[{place}]"
        if isinstance(edge, InputGraphEdgeDesc):
            _expect_index(name, "GraphInputIndex", edge.graph_input_index, graph.input_count)
        if isinstance(edge, OutputGraphEdgeDesc):
            _expect_index(name, "GraphOutputIndex", edge.graph_output_index, graph.output_count)
        if isinstance(edge, OutputGraphEdgeDesc | IntermediateGraphEdgeDesc):
            _expect_index(name, "FromNodeIndex", edge.from_node_index, len(nodes))
            count = len(nodes[edge.from_node_index].outputs)
            _expect_index(name, "FromNodeOutputIndex", edge.from_node_output_index, count)
        if isinstance(edge, InputGraphEdgeDesc | IntermediateGraphEdgeDesc):
            _expect_index(name, "ToNodeIndex", edge.to_node_index, len(nodes))
            count = len(nodes[edge.to_node_index].inputs)
            _expect_index(name, "ToNodeInputIndex", edge.to_node_input_index, count)


def _expect_index(edge: str, field: str, index: int, count: int) -> None:
    expect_type(edge, field, index, Integral)
    if not 0 <= index < count:
        expected = f"0 to {count - 1}" if count else "no edge: there is nothing to connect"
        raise DmlError(edge, field, index, expected)


def _operands(graph: GraphDesc, nodes: Sequence[NodeDesc]) -> tuple[tuple[Port, ...], ...]:
    """Every input of a node has one edge: none of the operators here has an optional tensor."""
    found: dict[tuple[int, int], Port] = {}
    arriving: list[InputGraphEdgeDesc | IntermediateGraphEdgeDesc]
    arriving = [*graph.input_edges, *graph.intermediate_edges]
    for edge in arriving:
        if isinstance(edge, InputGraphEdgeDesc):
            source = Port(None, edge.graph_input_index)
        else:
            source = Port(edge.from_node_index, edge.from_node_output_index)
        place = (edge.to_node_index, edge.to_node_input_index)
        if place in found:
            name, _ = nodes[place[0]].inputs[place[1]]
            both = f"{_described(nodes, found[place])} and {_described(nodes, source)}"
            raise DmlError(f"Nodes[{place[0]}]", name, f"connected to {both}", "one edge")
        found[place] = source
    for number, node in enumerate(nodes):
        for index, (name, _) in enumerate(node.inputs):
            if (number, index) not in found:
                expected = "an edge from an input of the graph or from another node"
                raise DmlError(f"Nodes[{number}]", name, "not connected", expected)
    return tuple(
        [
            tuple([found[number, index] for index in range(len(node.inputs))])
            for number, node in enumerate(nodes)
        ]
    )


def _outputs(graph: GraphDesc) -> list[OutputGraphEdgeDesc]:
    """The edge of each output of the graph, which has one."""
    edges: defaultdict[int, list[OutputGraphEdgeDesc]] = defaultdict(list)
    for edge in graph.output_edges:
        edges[edge.graph_output_index].append(edge)
    result = []
    # Ends at the first without an edge, however many there are said to be.
    for place in range(graph.output_count):
        if len(edges[place]) != 1:
            value = f"connected {len(edges[place])} times" if edges[place] else "not connected"
            raise DmlError("GraphDesc", f"GraphOutputs[{place}]", value, "one edge from a node")
        result += edges[place]
    return result


def _check_leaving(graph: GraphDesc, nodes: Sequence[NodeDesc]) -> None:
    """Every output of a node has one edge at least."""
    leaving: list[OutputGraphEdgeDesc | IntermediateGraphEdgeDesc]
    leaving = [*graph.output_edges, *graph.intermediate_edges]
    read = {(edge.from_node_index, edge.from_node_output_index) for edge in leaving}
    for number, node in enumerate(nodes):
        for index, (name, _) in enumerate(node.outputs):
            if (number, index) not in read:
                expected = "an edge to another node or to an output of the graph"
                raise DmlError(f"Nodes[{number}]", name, "not connected", expected)


def _inputs(
    graph: GraphDesc, nodes: Sequence[NodeDesc]
) -> tuple[NamedTensors, tuple[NamedTensors, ...]]:
    """Return the widest tensor of each input of the graph, and the tensors of all its readers.

    Every input is read, by tensors of one size that are all owned, or none of them. DirectML does
    not publish that each has a reader; without one the input would have no tensor.
    """
    readers: defaultdict[int, list[InputGraphEdgeDesc]] = defaultdict(list)
    for edge in graph.input_edges:
        readers[edge.graph_input_index].append(edge)
    result, all_readers = [], []
    for place in range(graph.input_count):
        name = next((edge.name for edge in readers[place] if edge.name), f"GraphInputs[{place}]")
        tensors: list[BufferTensorDesc] = []
        names: list[str] = []
        for edge in readers[place]:
            port, tensor = nodes[edge.to_node_index].inputs[edge.to_node_input_index]
            first = tensors[0] if tensors else tensor
            where, expected = f"Nodes[{edge.to_node_index}]", f"as others read {name}"
            if tensor.total_tensor_size_in_bytes != first.total_tensor_size_in_bytes:
                size, wanted = tensor.total_tensor_size_in_bytes, first.total_tensor_size_in_bytes
                field = f"{port}.TotalTensorSizeInBytes"
                raise DmlError(where, field, size, f"{wanted}, {expected}")
            if tensor.owned is not first.owned:
                wanted_flags = f"{first.flags.name}, {expected}"
                raise DmlError(where, f"{port}.Flags", tensor.flags.name, wanted_flags)
            tensors.append(tensor)
            names.append(name if len(readers[place]) == 1 else f"{where}.{port}")
        if not tensors:
            raise DmlError("GraphDesc", name, "not connected", "an edge to a node")
        widest = max(tensors, key=lambda tensor: tensor.bytes_reached)
        alignment = max(tensor.guaranteed_base_offset_alignment for tensor in tensors)
        result.append((name, replace(widest, guaranteed_base_offset_alignment=alignment)))
        all_readers.append(tuple(zip(names, tensors, strict=True)))
    return tuple(result), tuple(all_readers)


def _check_tensors(nodes: Sequence[NodeDesc], edge: IntermediateGraphEdgeDesc) -> None:
    """Require one size at both ends of an edge, and no tensor that DirectML owns."""
    made, output = nodes[edge.from_node_index].outputs[edge.from_node_output_index]
    read, tensor = nodes[edge.to_node_index].inputs[edge.to_node_input_index]
    where = f"Nodes[{edge.to_node_index}]"
    if tensor.owned:
        expected = "NONE: what is OWNED_BY_DML is an input of the graph"
        raise DmlError(where, f"{read}.Flags", "OWNED_BY_DML", expected)
    size, wanted = tensor.total_tensor_size_in_bytes, output.total_tensor_size_in_bytes
    if size != wanted:
        expected = f"{wanted}, as in Nodes[{edge.from_node_index}].{made}"
        raise DmlError(where, f"{read}.TotalTensorSizeInBytes", size, expected)


def _in_order(operands: Sequence[Sequence[Port]]) -> tuple[int, ...]:
    """The graph has no cycle: an order in which every node comes behind those that it needs."""
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for number, ports in enumerate(operands):
        sorter.add(number, *[port.node for port in ports if port.node is not None])
    try:
        sorter.prepare()
    except CycleError as error:
        shown = " -> ".join(f"Nodes[{number}]" for number in error.args[1])
        raise DmlError(
            "GraphDesc", "IntermediateEdges", f"a cycle, {shown}", "a graph without cycles"
        ) from None
    order: list[int] = []
    while ready := sorted(sorter.get_ready()):
        order += ready
        sorter.done(*ready)
    return tuple(order)


def _described(nodes: Sequence[NodeDesc], port: Port) -> str:
    if port.node is None:
        return f"GraphInputs[{port.index}]"
    return f"Nodes[{port.node}].{nodes[port.node].outputs[port.index][0]}"
