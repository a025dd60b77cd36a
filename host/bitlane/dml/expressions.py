"""Graphs written as expressions, in the manner of DirectMLX: ``y = dml.bit_count(a ^ b)``.

Makes descriptions of operators and edges alone; what they become is the graph's to say.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import DmlError
from .binding import CompiledOperator
from .device import Device
from .graph import (
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OperatorGraphNodeDesc,
    OutputGraphEdgeDesc,
)
from .operators import (
    ElementWiseBitAndOperatorDesc,
    ElementWiseBitCountOperatorDesc,
    ElementWiseBitNotOperatorDesc,
    ElementWiseBitOrOperatorDesc,
    ElementWiseBitShiftLeftOperatorDesc,
    ElementWiseBitShiftRightOperatorDesc,
    ElementWiseBitXorOperatorDesc,
    NodeDesc,
    Operator,
    ReduceOperatorDesc,
)
from .refusals import expect_type
from .tensor import BufferTensorDesc
from .types import DataType, ExecutionFlags, ReduceFunction


class Graph:
    """``dml::Graph``: what its expressions note is compiled into one operator.

    Errors are raised where an expression is written, by the rules of ``Device.create_operator``.
    """

    def __init__(self, device: Device) -> None:
        expect_type("Graph", "Device", device, Device)
        self.device = device
        self._nodes: list[tuple[Operator, tuple[Expression, ...]]] = []

    def __repr__(self) -> str:
        return f"<bitlane.dml.Graph: operators: {len(self._nodes)}>"

    def add(self, desc: NodeDesc, *operands: "Expression") -> "Expression":
        """The output of an operator of ``operands``. Raises ``DmlError``."""
        self._nodes.append((self.device.create_operator(desc), operands))
        return Expression(self, desc.output_tensor, len(self._nodes) - 1, None)

    def desc(self, outputs: Sequence["Expression"]) -> GraphDesc:
        """The description of the graph with ``outputs``, of what they need alone.

        The inputs are those of ``input_tensor``, by their numbers.
        """
        expect_type("Graph", "Outputs", outputs, Sequence)
        for output in outputs:
            _expect_mine(self, "Outputs", output)
            if output.node is None:
                raise DmlError("Graph", "Outputs", f"input {output.input}", "operators' outputs")
        places = {number: place for place, number in enumerate(self._needed(outputs))}
        arriving: list[InputGraphEdgeDesc] = []
        between: list[IntermediateGraphEdgeDesc] = []
        for number, place in places.items():
            for port, each in enumerate(self._nodes[number][1]):
                if each.node is None:
                    assert each.input is not None
                    arriving.append(InputGraphEdgeDesc(each.input, place, port))
                else:
                    between.append(IntermediateGraphEdgeDesc(places[each.node], 0, place, port))
        leaving = [
            OutputGraphEdgeDesc(places[output.node], 0, number)
            for number, output in enumerate(outputs)
            if output.node is not None
        ]
        nodes = [OperatorGraphNodeDesc(self._nodes[number][0]) for number in places]
        inputs = 1 + max([edge.graph_input_index for edge in arriving], default=-1)
        return GraphDesc(inputs, len(outputs), nodes, arriving, leaving, between)

    def compile(
        self, outputs: Sequence["Expression"], flags: ExecutionFlags = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """``dml::Graph::Compile``: ``Device.compile_graph`` of ``desc(outputs)``."""
        return self.device.compile_graph(self.desc(outputs), flags)

    def _needed(self, outputs: Sequence["Expression"]) -> list[int]:
        """The nodes that ``outputs`` need, in the order in which they were written."""
        waiting = [output.node for output in outputs]
        found: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number is not None and number not in found:
                found.add(number)
                waiting += [operand.node for operand in self._nodes[number][1]]
        return sorted(found)


def bit_and(a: "Expression", b: "Expression") -> "Expression":
    """``dml::BitAnd``: the bits that are 1 in ``a`` and ``b``."""
    return _of_two(ElementWiseBitAndOperatorDesc, a, b)


def bit_or(a: "Expression", b: "Expression") -> "Expression":
    """``dml::BitOr``: the bits that are 1 in ``a`` or ``b``."""
    return _of_two(ElementWiseBitOrOperatorDesc, a, b)


def bit_xor(a: "Expression", b: "Expression") -> "Expression":
    """``dml::BitXor``: the bits in which ``a`` and ``b`` differ."""
    return _of_two(ElementWiseBitXorOperatorDesc, a, b)


def bit_shift_left(a: "Expression", b: "Expression") -> "Expression":
    """``dml::BitShiftLeft``: ``a << b``, of counts modulo the width."""
    return _of_two(ElementWiseBitShiftLeftOperatorDesc, a, b)


def bit_shift_right(a: "Expression", b: "Expression") -> "Expression":
    """``dml::BitShiftRight``: logical ``a >> b``, of counts modulo the width."""
    return _of_two(ElementWiseBitShiftRightOperatorDesc, a, b)


def bit_not(a: "Expression") -> "Expression":
    """``dml::BitNot``: every bit inverted."""
    _expect(a)
    return a.graph.add(ElementWiseBitNotOperatorDesc(a.output_desc, _packed(a)), a)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """``dml::Expression``: an input of a graph, or the output of a node of it.

    ``^ & | ~ << >>`` make further ones. Both operands are of one description, as DirectML has it:
    nothing broadcasts unless ``reinterpret`` gives it strides of 0.
    """

    graph: Graph
    output_desc: BufferTensorDesc
    """What it is read as."""
    node: int | None
    """The number of the node in the order in which they were written; None for an input."""
    input: int | None
    """The number of the graph's input; None for the output of a node."""

    __and__ = bit_and
    __or__ = bit_or
    __xor__ = bit_xor
    __lshift__ = bit_shift_left
    __rshift__ = bit_shift_right
    __invert__ = bit_not

    def __bool__(self) -> bool:
        raise DmlError("Graph", "Input", "asked for its truth", "& or | to join expressions")


def input_tensor(graph: Graph, index: int, desc: BufferTensorDesc) -> Expression:
    """``dml::InputTensor``: the graph's input of number ``index``, which is bound as ``desc``."""
    expect_type("InputTensor", "Graph", graph, Graph)
    expect_type("InputTensor", "Index", index, int)
    if index < 0:
        raise DmlError("InputTensor", "Index", index, "0 or more")
    expect_type("InputTensor", "Desc", desc, BufferTensorDesc)
    return Expression(graph, desc, None, index)


def reinterpret(
    a: Expression,
    data_type: DataType,
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Expression:
    """``dml::Reinterpret``: the same bytes, read as another tensor. Moves none of them."""
    expect_type("Reinterpret", "Input", a, Expression)
    old = a.output_desc
    desc = BufferTensorDesc(data_type, sizes, strides, old.flags, old.total_tensor_size_in_bytes)
    return Expression(a.graph, desc, a.node, a.input)


def bit_count(a: Expression, output_data_type: DataType = DataType.UINT8) -> Expression:
    """``dml::BitCount``: how many bits of each element are 1, as UINT8 or UINT32."""
    _expect(a)
    desc = ElementWiseBitCountOperatorDesc(a.output_desc, _packed(a, output_data_type))
    return a.graph.add(desc, a)


def reduce(
    a: Expression,
    function: ReduceFunction = ReduceFunction.SUM,
    axes: Sequence[int] = (),
) -> Expression:
    """``dml::Reduce``: the sums along ``axes``, which stay with size 1; along all if none is given.

    Of a ``bit_count`` of UINT32 alone, and modulo 2**32.
    """
    _expect(a)
    desc = a.output_desc
    chosen = tuple(axes) or tuple(range(desc.dimension_count))
    sizes = [1 if axis in chosen else size for axis, size in enumerate(desc.sizes)]
    output = BufferTensorDesc(desc.data_type, sizes)
    return a.graph.add(ReduceOperatorDesc(function, desc, output, chosen), a)


def _of_two(
    kind: Callable[[BufferTensorDesc, BufferTensorDesc, BufferTensorDesc], NodeDesc],
    a: Expression,
    b: Expression,
) -> Expression:
    _expect(a)
    _expect_mine(a.graph, "BTensor", b)
    return a.graph.add(kind(a.output_desc, b.output_desc, _packed(a)), a, b)


def _packed(a: Expression, data_type: DataType | None = None) -> BufferTensorDesc:
    desc = a.output_desc
    return BufferTensorDesc(desc.data_type if data_type is None else data_type, desc.sizes)


def _expect(a: object) -> None:
    expect_type("Graph", "Input", a, Expression)


def _expect_mine(graph: Graph, field: str, b: object) -> None:
    expect_type("Graph", field, b, Expression)
    assert isinstance(b, Expression)
    if b.graph is not graph:
        raise DmlError("Graph", field, "of another graph", "an expression of this one")
