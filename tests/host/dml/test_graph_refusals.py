"""Bad graphs are refused by node and port, and REDUCE adds up only counts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bitlane import dml
from bitlane.dml import (
    BufferTensorDesc,
    DataType,
    ExecutionFlags,
    FeatureLevel,
    OperatorGraphNodeDesc,
    ReduceFunction,
    ReduceOperatorDesc,
)
from bitlane_rtl.abi import Mode
from support.host.dml_bench import COUNT, NOT, XOR, expect_error
from support.host.dml_graphs import (
    DISTANCES,
    NOTHING,
    ONE,
    OWNED,
    PLAIN,
    ROWS,
    SUMS,
    WORDS,
    Out,
    To,
    Via,
    desc,
    distances,
)
from support.host.model_driver import ModelDriver


def refuse(
    nodes: Sequence[Any],
    edges: Sequence[Any],
    found: str,
    expected: str,
    hresult: str = "E_INVALIDARG",
    driver: ModelDriver | None = None,
    changes: dict[str, Any] | None = None,
) -> None:
    """Expect that a graph is refused in one line, and that nothing reaches the device."""
    driver = driver or ModelDriver()
    device = dml.Device(driver, FeatureLevel.LEVEL_6_4)
    graph = replace(desc(device, nodes, *edges), **(changes or {}))
    with pytest.raises(dml.DmlError) as caught:
        device.compile_graph(graph)
    expect_error(caught.value, found, expected, hresult)
    assert "\n" not in str(caught.value)
    assert driver.model.calls == []
    assert driver.allocator.pieces == 0


XOR_WORDS = XOR(WORDS, WORDS, WORDS)
TWO = [NOT(WORDS, WORDS), NOT(WORDS, WORDS)]
SMALLER, OWNING = ([NOT(WORDS, WORDS), node] for node in (NOT(SUMS, SUMS), NOT(OWNED, WORDS)))
READ = [Via(0, 0, 1, 0), Out(1, 0, 1)]
JOINED = [To(0, 0, 0), Via(0, 0, 1, 0), Out(1, 0, 0)]
TO_INPUT = "InputTensor is connected to GraphInputs[0]"
NO_INPUT = To(NOTHING, 0, 0)
BETWEEN = "IntermediateEdges[0]"
CYCLE = "GraphDesc.IntermediateEdges is a cycle, Nodes[0]"
SMALL = "Nodes[1].InputTensor.TotalTensorSizeInBytes is 16"
OWNED_INPUT = "Nodes[1].InputTensor.Flags is OWNED_BY_DML"


@pytest.mark.parametrize(
    ("nodes", "edges", "found", "expected"),
    [
        (ONE, [Out(0, 0, 0)], "Nodes[0].InputTensor is not connected", "an edge from an input"),
        ([XOR_WORDS], PLAIN, "Nodes[0].BTensor is not connected", "or from another node"),
        (TWO, [*PLAIN, To(0, 1, 0)], "Nodes[1].OutputTensor is not connected", "another node or"),
        (ONE, [To(0, 0, 0)], "GraphDesc.GraphOutputs[0] is not connected", "one edge from a node"),
        (
            TWO,
            [To(0, 0, 0), To(0, 1, 0), Out(0, 0, 0), Out(1, 0, 0)],
            "GraphDesc.GraphOutputs[0] is connected 2 times",
            "one edge from a node",
        ),
        (ONE, [*PLAIN, To(1, 0, 0)], f"Nodes[0].{TO_INPUT} and GraphInputs[1]", "one edge"),
        (
            TWO,
            [*PLAIN, To(0, 1, 0), Via(0, 0, 1, 0)],
            f"Nodes[1].{TO_INPUT} and Nodes[0].OutputTensor",
            "one edge",
        ),
        (ONE, [To(1, 0, 0), Out(0, 0, 0)], "GraphDesc.GraphInputs[0] is not connected", "a node"),
        (
            TWO,
            [Via(0, 0, 1, 0), Via(1, 0, 0, 0), Out(1, 0, 0)],
            f"{CYCLE} -> Nodes[1] -> Nodes[0]",
            "a graph without cycles",
        ),
        (
            [*TWO, *ONE],
            [*(Via(node, 0, (node + 1) % 3, 0) for node in range(3)), Out(2, 0, 0)],
            f"{CYCLE} -> Nodes[1] -> Nodes[2] -> Nodes[0]",
            "without cycles",
        ),
        (ONE, [Via(0, 0, 0, 0), Out(0, 0, 0)], f"{CYCLE} -> Nodes[0]", "without cycles"),
        (ONE, [*PLAIN, To(0, 1, 0)], "InputEdges[1].ToNodeIndex is 1", "0 to 0"),
        (ONE, [*PLAIN, To(0, 0, 1)], "InputEdges[1].ToNodeInputIndex is 1", "0 to 0"),
        (ONE, [To(-1, 0, 0), Out(0, 0, 0)], "InputEdges[0].GraphInputIndex is -1", "nothing to"),
        (ONE, [To(0, 0, 0), Out(0, 2, 0)], "OutputEdges[0].FromNodeOutputIndex is 2", "0 to 0"),
        (ONE, [To(0, 0, 0), Out(3, 0, 0)], "OutputEdges[0].FromNodeIndex is 3", "0 to 0"),
        (TWO, [*PLAIN, Via(0, 1, 1, 0)], f"{BETWEEN}.FromNodeOutputIndex is 1", "0 to 0"),
        (TWO, [*PLAIN, Via(0, 0, 2, 0)], f"{BETWEEN}.ToNodeIndex is 2", "0 to 1"),
        (SMALLER, [*PLAIN, *READ], SMALL, "128, as in Nodes[0].OutputTensor"),
        (SMALLER, [*PLAIN, To(0, 1, 0), Out(1, 0, 1)], SMALL, "128, as others read GraphInputs[0]"),
        (OWNING, JOINED, OWNED_INPUT, "NONE: what is OWNED_BY_DML is an input of the graph"),
        (
            OWNING,
            [To(0, 0, 0), To(0, 1, 0), Out(0, 0, 0), Out(1, 0, 1)],
            OWNED_INPUT,
            "NONE, as others read GraphInputs[0]",
        ),
        ([], [], "GraphDesc.GraphOutputs[0] is not connected", "one edge from a node"),
    ],
)
def test_edges_that_lead_nowhere_or_do_not_fit(
    nodes: Sequence[Any], edges: Sequence[Any], found: str, expected: str
) -> None:
    refuse(nodes, edges, found, expected)


@pytest.mark.parametrize(
    ("changes", "found", "expected"),
    [
        ({"output_count": 0}, "GraphDesc.OutputCount is 0", "1 or more"),
        ({"input_count": -1}, "GraphDesc.InputCount is -1", "0 or more"),
        ({"output_count": 2**62}, "GraphDesc.GraphOutputs[1] is not connected", "one edge from a"),
        ({"input_count": 2}, "GraphDesc.GraphInputs[1] is not connected", "an edge to a node"),
        ({"input_count": "1"}, "GraphDesc.InputCount is '1'", "of type Integral"),
        ({"nodes": None}, "GraphDesc.Nodes is None", "of type Sequence"),
        ({"nodes": [7]}, "GraphDesc.Nodes[0] is 7", "of type OperatorGraphNodeDesc"),
        ({"nodes": [OperatorGraphNodeDesc(NOTHING)]}, "Nodes[0].Operator is None", "Operator"),
        (
            {"input_edges": [Out(0, 0, 0)]},
            "GraphDesc.InputEdges[0] is of type OutputGraphEdgeDesc",
            "of type InputGraphEdgeDesc",
        ),
        ({"input_edges": [NO_INPUT]}, "InputEdges[0].GraphInputIndex is None", "of type Integral"),
    ],
)
def test_descriptions_that_are_none(changes: dict[str, Any], found: str, expected: str) -> None:
    refuse(ONE, PLAIN, found, expected, changes=changes)


def test_graphs_of_another_device() -> None:
    device, other = dml.Device(ModelDriver()), dml.Device(ModelDriver())
    with pytest.raises(dml.DmlError, match=r"CompileGraph\.Device is another device"):
        device.compile_graph(distances(other))
    with pytest.raises(dml.DmlError, match=r"CompileGraph\.Flags is of type ExecutionFlags"):
        device.compile_graph(distances(device), ExecutionFlags(99))
    with pytest.raises(dml.DmlTypeError, match=r"CompileGraph\.Desc is None"):
        device.compile_graph(NOTHING)


# --- Sums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "edges", "found"),
    [
        ([ROWS], PLAIN, "Nodes[0].InputTensor is no count of bits"),
        (
            [XOR(WORDS, WORDS, WORDS), ROWS],
            [To(0, 0, 0), To(1, 0, 1), Via(0, 0, 1, 0), Out(1, 0, 0)],
            "Nodes[1].InputTensor is no count of bits",
        ),
        (
            [*DISTANCES, ReduceOperatorDesc(ReduceFunction.SUM, SUMS, SUMS, (1,))],
            [
                To(0, 0, 0), To(1, 0, 1), Via(0, 0, 1, 0), Via(1, 0, 2, 0), Via(2, 0, 3, 0),
                Out(3, 0, 0),
            ],
            "Nodes[3].InputTensor is no count of bits",
        ),
    ],
)  # fmt: skip
def test_only_counts_are_added_up(nodes: Sequence[Any], edges: Sequence[Any], found: str) -> None:
    refuse(nodes, edges, found, "the output of a BIT_COUNT", "DXGI_ERROR_UNSUPPORTED")


def test_circuits_without_sums_say_so() -> None:
    driver = ModelDriver(modes=frozenset(Mode) - {Mode.SUM})
    refuse(
        DISTANCES[1:],
        JOINED,
        "GraphDesc.Nodes is beyond this device",
        "built without sums",
        "DXGI_ERROR_UNSUPPORTED",
        driver,
    )


def test_rows_that_no_run_has_are_refused() -> None:
    words = BufferTensorDesc(DataType.UINT32, [2, 1024])
    sums = BufferTensorDesc(DataType.UINT32, [2, 1])
    refuse(
        [COUNT(words, words), ReduceOperatorDesc(ReduceFunction.SUM, words, sums, (1,))],
        JOINED,
        "GraphDesc.Nodes is beyond this device",
        "4096 bytes a row; expected 4095 at most",
        "DXGI_ERROR_UNSUPPORTED",
        ModelDriver(length_bits=12),
    )


def test_reduce_is_no_operator_by_itself() -> None:
    device = dml.Device(ModelDriver())
    with pytest.raises(dml.DmlError, match=r"DML_OPERATOR_REDUCE; expected a bit operator; comp"):
        device.compile_operator(device.create_operator(ROWS))


FLOATS = BufferTensorDesc(DataType.FLOAT32, [4, 8])
LONG = BufferTensorDesc(DataType.UINT64, [4, 8])


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (replace(ROWS, function=ReduceFunction.MAX), r"Function is MAX; expected SUM"),
        (replace(ROWS, function=12), r"Function is 12; expected one of ARGMAX, ARGMIN"),
        (replace(ROWS, axes=()), r"AxisCount is 0; expected at least 1"),
        (replace(ROWS, axes=(1, 1)), r"Axes\[1\] is 1; expected 0 to 1, each once"),
        (replace(ROWS, axes=(2,)), r"Axes\[0\] is 2; expected 0 to 1"),
        (replace(ROWS, axes=(-1,)), r"Axes\[0\] is -1; expected 0 to 1"),
        (replace(ROWS, axes="1"), r"Axes is '1'; expected a list of integers"),
        (replace(ROWS, axes=(0,)), r"OutputTensor\.Sizes is \[4, 1\]; expected \[1, 8\], as in"),
        (replace(ROWS, input_tensor=FLOATS), r"DataType is UINT32; expected FLOAT32, as in Input"),
        (replace(ROWS, input_tensor=LONG), r"DataType is UINT64; expected one of .*level 4_1"),
        (replace(ROWS, output_tensor=None), r"OutputTensor\.Desc is None"),
    ],
)  # fmt: skip
def test_reduce_has_rules_of_its_own(node: ReduceOperatorDesc, message: str) -> None:
    with pytest.raises(dml.DmlError, match=message) as caught:
        dml.Device(ModelDriver()).create_operator(node)
    assert "\n" not in str(caught.value)


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
    node = ReduceOperatorDesc(ReduceFunction.SUM, rows, sums, (3,))
    dml.Device(ModelDriver(), first).create_operator(node)
    for level in [level for level in FeatureLevel if level < first]:
        with pytest.raises(dml.DmlError, match=r"InputTensor\.DataType"):
            dml.Device(ModelDriver(), level).create_operator(node)
