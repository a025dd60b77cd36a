"""Bad graphs are refused by node and port, and REDUCE adds up only counts.

Three dots in the words of a row stand for any text.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bitlane import dml
from bitlane.dml import BufferTensorDesc, DataType, FeatureLevel
from bitlane.dml import OperatorGraphNodeDesc as Node
from bitlane.dml import ReduceFunction as Function
from bitlane.dml import ReduceOperatorDesc as Reduce
from bitlane.dml.operators import OPERATOR_DESCS
from bitlane_rtl.abi import Lane, Mode, Op
from support.host.dml_bench import (
    COUNT,
    DISTANCES,
    NOT,
    NOTHING,
    ONE,
    OWNED,
    PLAIN,
    ROWS,
    SUMS,
    WORDS,
    XOR,
    Out,
    To,
    Via,
    desc,
    distances,
    refusals,
)
from support.host.model_link import ModelDriver
from support.host.refusals import literal, refused

LEVEL = FeatureLevel.LEVEL_6_4
Call = Callable[[Any], object]


def graph(nodes: Sequence[Any], edges: Sequence[Any], /, **changes: Any) -> Call:
    """Return the call that compiles a graph, of which fields are replaced by ``changes``."""

    def call(b: Any) -> object:
        device = dml.Device(b.driver, LEVEL)
        return device.compile_graph(replace(desc(device, nodes, *edges), **changes))

    return call


def reduced(**changes: Any) -> Call:
    return lambda b: b.create(replace(ROWS, **changes))


XOR_WORDS = XOR(WORDS, WORDS, WORDS)
TWO = [NOT(WORDS, WORDS), NOT(WORDS, WORDS)]
SMALLER, OWNING = ([NOT(WORDS, WORDS), node] for node in (NOT(SUMS, SUMS), NOT(OWNED, WORDS)))
READ = [Via(0, 0, 1, 0), Out(1, 0, 1)]
JOINED = [To(0, 0, 0), Via(0, 0, 1, 0), Out(1, 0, 0)]
TWICE = [To(0, 0, 0), To(0, 1, 0), Out(0, 0, 0)]
RING = [*(Via(node, 0, (node + 1) % 3, 0) for node in range(3)), Out(2, 0, 0)]
NO_INPUT, OTHER = To(NOTHING, 0, 0), dml.Device(ModelDriver())
BETWEEN = "IntermediateEdges[0]"
FROM_NODE = "expected ...one edge from a node"
TO_INPUT = "InputTensor is connected to GraphInputs[0]"
CYCLE = "GraphDesc.IntermediateEdges is a cycle, Nodes[0]"
SMALL = "Nodes[1].InputTensor.TotalTensorSizeInBytes is 16; expected 128, as"
OWNED_INPUT = "Nodes[1].InputTensor.Flags is OWNED_BY_DML; expected NONE"

test_edges_that_lead_nowhere_or_do_not_fit = refusals(
    "E_INVALIDARG: ",
    [
        (graph(ONE, [Out(0, 0, 0)]), "Nodes[0].InputTensor is not connected; ...an edge from"),
        (graph([XOR_WORDS], PLAIN), "Nodes[0].BTensor is not connected; ...or from another node"),
        (graph(TWO, [*PLAIN, To(0, 1, 0)]), "Nodes[1].OutputTensor is not connected; ...another"),
        (graph(ONE, [To(0, 0, 0)]), f"GraphDesc.GraphOutputs[0] is not connected; {FROM_NODE}"),
        (graph([], []), f"GraphDesc.GraphOutputs[0] is not connected; {FROM_NODE}"),
        (
            graph(TWO, [*TWICE, Out(1, 0, 0)]),
            f"GraphDesc.GraphOutputs[0] is connected 2 times; {FROM_NODE}",
        ),
        (graph(ONE, [*PLAIN, To(1, 0, 0)]), f"Nodes[0].{TO_INPUT} and GraphInputs[1]; ...one edge"),
        (
            graph(TWO, [*PLAIN, To(0, 1, 0), Via(0, 0, 1, 0)]),
            f"Nodes[1].{TO_INPUT} and Nodes[0].OutputTensor; expected ...one edge",
        ),
        (graph(ONE, [To(1, 0, 0), Out(0, 0, 0)]), "GraphDesc.GraphInputs[0] is not connected; ..."),
        (
            graph(TWO, [Via(0, 0, 1, 0), Via(1, 0, 0, 0), Out(1, 0, 0)]),
            f"{CYCLE} -> Nodes[1] -> Nodes[0]; expected a graph without cycles",
        ),
        (graph([*TWO, *ONE], RING), f"{CYCLE} -> Nodes[1] -> Nodes[2] -> Nodes[0]; ...without cyc"),
        (graph(ONE, [Via(0, 0, 0, 0), Out(0, 0, 0)]), f"{CYCLE} -> Nodes[0]; ...without cycles"),
        (graph(ONE, [*PLAIN, To(0, 1, 0)]), "InputEdges[1].ToNodeIndex is 1; ...0 to 0"),
        (graph(ONE, [*PLAIN, To(0, 0, 1)]), "InputEdges[1].ToNodeInputIndex is 1; ...0 to 0"),
        (graph(ONE, [To(-1, 0, 0), Out(0, 0, 0)]), "...GraphInputIndex is -1; ...nothing to"),
        (graph(ONE, [To(0, 0, 0), Out(0, 2, 0)]), "OutputEdges[0].FromNodeOutputIndex is 2; ...0"),
        (graph(ONE, [To(0, 0, 0), Out(3, 0, 0)]), "OutputEdges[0].FromNodeIndex is 3; ...0 to 0"),
        (graph(TWO, [*PLAIN, Via(0, 1, 1, 0)]), f"{BETWEEN}.FromNodeOutputIndex is 1; ...0 to 0"),
        (graph(TWO, [*PLAIN, Via(0, 0, 2, 0)]), f"{BETWEEN}.ToNodeIndex is 2; ...0 to 1"),
        (graph(SMALLER, [*PLAIN, *READ]), f"{SMALL} in Nodes[0].OutputTensor"),
        (graph(SMALLER, [*PLAIN, To(0, 1, 0), Out(1, 0, 1)]), f"{SMALL} others read Graph"),
        (graph(OWNING, JOINED), f"{OWNED_INPUT}: what is OWNED_BY_DML is an input of the graph"),
        (graph(OWNING, [*TWICE, Out(1, 0, 1)]), f"{OWNED_INPUT}, as others read GraphInputs[0]"),
        (graph(ONE, PLAIN, output_count=0), "GraphDesc.OutputCount is 0; expected 1 or more"),
        (graph(ONE, PLAIN, input_count=-1), "GraphDesc.InputCount is -1; expected 0 or more"),
        (
            graph(ONE, PLAIN, output_count=2**62),
            f"GraphDesc.GraphOutputs[1] is not connected; {FROM_NODE}",
        ),
        (graph(ONE, PLAIN, input_count=2), "...GraphInputs[1] is not connected; ...to a node"),
        (graph(ONE, PLAIN, input_count="1"), "GraphDesc.InputCount is '1'; ...of type Integral"),
        (graph(ONE, PLAIN, nodes=None), "GraphDesc.Nodes is None; expected of type Sequence"),
        (graph(ONE, PLAIN, nodes=[7]), "GraphDesc.Nodes[0] is 7; ...of type OperatorGraphNodeDesc"),
        (graph(ONE, PLAIN, nodes=[Node(NOTHING)]), "Nodes[0].Operator is None; ...Operator"),
        (
            graph(ONE, PLAIN, input_edges=[Out(0, 0, 0)]),
            "GraphDesc.InputEdges[0] is of type OutputGraphEdgeDesc; ...InputGraphEdgeDesc",
        ),
        (graph(ONE, PLAIN, input_edges=[NO_INPUT]), "...GraphInputIndex is None; ...type Integral"),
        (lambda b: b.device.compile_graph(distances(OTHER)), "CompileGraph.Device is another d"),
        (
            lambda b: b.device.compile_graph(distances(b.device), dml.ExecutionFlags(99)),
            "CompileGraph.Flags is of type ExecutionFlags",
        ),
        (lambda b: b.device.compile_graph(NOTHING), "CompileGraph.Desc is None"),
    ],
)  # fmt: skip


# --- sums and circuits ------------------------------------------------------------------------

A, B, FIRST = To(0, 0, 0), To(1, 0, 1), Via(0, 0, 1, 0)
NO_COUNT = "InputTensor is not a count of bits; expected the output of a BIT_COUNT"
AGAIN = Reduce(Function.SUM, SUMS, SUMS, (1,))
test_counts_alone_are_added_up_in_graphs = refusals(
    "DXGI_ERROR_UNSUPPORTED: ",
    [
        (graph([ROWS], PLAIN), f"Nodes[0].{NO_COUNT}"),
        (graph([XOR_WORDS, ROWS], [A, B, FIRST, Out(1, 0, 0)]), f"Nodes[1].{NO_COUNT}"),
        (
            graph(
                [*DISTANCES, AGAIN], [A, B, FIRST, Via(1, 0, 2, 0), Via(2, 0, 3, 0), Out(3, 0, 0)]
            ),
            f"Nodes[3].{NO_COUNT}",
        ),
        (lambda b: b.compile(ROWS), "...REDUCE; expected a bit operator; compile_graph"),
        (reduced(function=Function.MAX), "...Function is MAX; expected SUM"),
    ],
)  # fmt: skip

LONG_ROWS = BufferTensorDesc(DataType.UINT32, [2, 1024])
LONG_SUMS = BufferTensorDesc(DataType.UINT32, [2, 1])
LONG = [COUNT(LONG_ROWS, LONG_ROWS), Reduce(Function.SUM, LONG_ROWS, LONG_SUMS, (1,))]
BEYOND = "GraphDesc.Nodes is beyond this device; expected "
BYTES, WIDE = BufferTensorDesc(DataType.UINT8, [2, 3]), BufferTensorDesc(DataType.UINT64, [2])
NARROW = {"lanes": frozenset({Lane.BITS_8, Lane.BITS_32})}


@pytest.mark.parametrize(
    ("circuit", "nodes", "edges", "words"),
    [
        ({"modes": frozenset(Mode) - {Mode.SUM}}, DISTANCES[1:], JOINED, f"{BEYOND}...without s"),
        ({"length_bits": 12}, LONG, JOINED, "...beyond ...; ...4096 bytes a row; expected 4095"),
        *(
            (
                {"ops": frozenset(Op) - {kind.op}},
                [kind(*[BYTES] * (3 if kind.op.reads_b else 2))],
                [],
                f"{kind.operator_type!s}.Type is {kind.op.name}; ...this device was built with: ",
            )
            for kind in OPERATOR_DESCS.values()
        ),
        *(
            (NARROW, [node], [], f"{name}.DataType is UINT64; expected ...elements of 8, 32 bits")
            for node, name in (
                (dml.ElementWiseBitShiftLeftOperatorDesc(WIDE, WIDE, WIDE), "ATensor"),
                (dml.ElementWiseBitShiftRightOperatorDesc(WIDE, WIDE, WIDE), "ATensor"),
                (COUNT(WIDE, BufferTensorDesc(DataType.UINT8, [2])), "InputTensor"),
            )
        ),
    ],
)  # fmt: skip
def test_what_a_circuit_lacks_is_named(
    circuit: dict[str, Any], nodes: list[Any], edges: list[Any], words: str
) -> None:
    device = dml.Device(ModelDriver(**circuit), LEVEL)
    with refused(device, dml.DmlError, f"^DXGI_ERROR_UNSUPPORTED: {literal(words)}"):
        device.compile_graph(desc(device, nodes, *edges))


# --- REDUCE and expressions -------------------------------------------------------------------

FLOATS = BufferTensorDesc(DataType.FLOAT32, [4, 8])
LONGS = BufferTensorDesc(DataType.UINT64, [4, 8])


def expression(write: Call, tensor: BufferTensorDesc = LONGS) -> Call:
    """Return the call that writes an expression of an input, which is ``tensor``."""
    return lambda b: write(dml.input_tensor(dml.Graph(b.device), 0, tensor))


test_reduce_and_expressions_have_rules = refusals(
    "E_INVALIDARG: ...",
    [
        (reduced(function=12), "Function is 12; expected one of ARGMAX, ARGMIN"),
        (reduced(axes=()), "AxisCount is 0; expected at least 1"),
        (reduced(axes=(1, 1)), "Axes[1] is 1; expected 0 to 1, each once"),
        (reduced(axes=(2,)), "Axes[0] is 2; expected 0 to 1"),
        (reduced(axes=(-1,)), "Axes[0] is -1; expected 0 to 1"),
        (reduced(axes="1"), "Axes is '1'; expected a list of integers"),
        (reduced(axes=(0,)), "OutputTensor.Sizes is [4, 1]; expected [1, 8], as in"),
        (reduced(input_tensor=FLOATS), "DataType is UINT32; expected FLOAT32, as in Input"),
        (reduced(input_tensor=LONGS), "DataType is UINT64; expected one of ...level 4_1"),
        (reduced(output_tensor=None), "OutputTensor.Desc is None"),
        (expression(lambda a: a ^ 3), "Graph.BTensor is 3; expected of type Expression"),
        (
            expression(lambda a: a ^ dml.reinterpret(a, DataType.UINT64, [32])),
            "BTensor.DimensionCount is 1; expected 2",
        ),
        (
            expression(lambda a: dml.reinterpret(a, DataType.UINT64, [33]) ^ a),
            "TotalTensorSizeInBytes is 256; expected at least 264",
        ),
        (expression(lambda a: dml.bit_not(NOTHING)), "Graph.Input is None"),
        (expression(lambda a: a.graph.desc([NOTHING])), "Graph.Outputs is None; ...of type Exp"),
        (expression(lambda a: a.graph.compile([a])), "Outputs is input 0; expected operators' out"),
        (expression(lambda a: dml.input_tensor(a.graph, -1, LONGS)), "Index is -1; expected 0"),
        (expression(lambda a: a and a), "asked for its truth; expected & or |"),
        (expression(lambda a: a.graph.compile([])), "OutputCount is 0"),
        (
            lambda b: dml.bit_xor(*(dml.input_tensor(dml.Graph(b.device), 0, LONGS) for _ in "ab")),
            "is of another graph",
        ),
        (expression(lambda a: dml.reduce(~a, axes=["x"]), WORDS), "Axes is of type tuple; ...list"),
        (lambda b: dml.Graph(NOTHING), "Graph.Device is None"),
    ],
)  # fmt: skip


@pytest.mark.parametrize(
    ("data_type", "first"),
    [
        (DataType.FLOAT32, FeatureLevel.LEVEL_1_0),
        (DataType.UINT32, FeatureLevel.LEVEL_2_1),
        (DataType.UINT64, FeatureLevel.LEVEL_5_0),
    ],
)
def test_reduce_takes_types_from_some_level_on(data_type: DataType, first: FeatureLevel) -> None:
    rows, sums = (BufferTensorDesc(data_type, [1, 1, 4, columns]) for columns in (8, 1))
    node = Reduce(Function.SUM, rows, sums, (3,))
    dml.Device(ModelDriver(), first).create_operator(node)
    for level in [level for level in FeatureLevel if level < first]:
        with pytest.raises(dml.DmlError, match=r"InputTensor\.DataType"):
            dml.Device(ModelDriver(), level).create_operator(node)
