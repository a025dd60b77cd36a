"""Graphs are fused into fewer passes, bound like operators, and written as expressions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.compiler import allocate
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, GraphDesc, TensorFlags
from bitlane_rtl.abi import Op
from support.host.dml_bench import (
    COUNT,
    NOT,
    ONE,
    PLAIN,
    SHIFT_LEFT,
    WORDS,
    XOR,
    A,
    B,
    Out,
    To,
    Via,
    desc,
    distances,
    run,
)
from support.host.model_link import ModelDriver


@pytest.fixture
def device() -> dml.Device:
    return dml.Device(ModelDriver())


# --- What graphs become -------------------------------------------------------------------------


def test_logic_count_and_sum_are_one_pass(device: dml.Device) -> None:
    operator = device.compile_graph(distances(device))
    assert operator.explain().splitlines() == [
        "pass           elements          commands  runs  bytes read  bytes written  cycles",
        "COUNT_XOR SUM  4 x 8 of 32 bits         1     4         256             16      33",
        "fused          1 pass                   1     4         256             16      33",
        "unfused        2 passes                 2     5         384            144      64",
    ]
    (sums,) = run(distances(device), device, A, B)
    assert sums.tolist() == np.bitwise_count(A ^ B).sum(axis=1, keepdims=True).tolist()


def test_what_is_an_output_too_is_written(device: dml.Device) -> None:
    graph = distances(device, Out(0, 0, 1), Out(1, 0, 2))
    lines = device.compile_graph(graph).explain().splitlines()
    assert [line.split("  ")[0] for line in lines[1:-2]] == ["XOR", "COUNT SUM", "COUNT"]
    sums, differences, counts = run(graph, device, A, B)
    assert np.array_equal(differences, A ^ B)
    assert np.array_equal(counts, np.bitwise_count(A ^ B))
    assert np.array_equal(sums, counts.sum(axis=1, keepdims=True))


def test_a_node_without_anything_to_fuse_is_what_it_is_alone() -> None:
    driver = ModelDriver()
    device = dml.Device(driver)
    (result,) = run(desc(device, ONE, *PLAIN), device, A)
    assert np.array_equal(result, ~A)
    assert driver.model.calls == ["write", "NOT", "read"]


@pytest.mark.parametrize("ops", [frozenset(Op) - {Op.COPY}, frozenset({Op.XOR, Op.AND})])
def test_an_output_of_a_node_may_be_two_of_the_graph(ops: frozenset[Op]) -> None:
    device = dml.Device(ModelDriver(ops=ops))
    edges = [To(0, 0, 0), To(1, 0, 1), Out(0, 0, 0), Out(0, 0, 1)]
    for result in run(desc(device, [XOR(WORDS, WORDS, WORDS)], *edges), device, A, B):
        assert np.array_equal(result, A ^ B)


def test_inversions_go_into_their_neighbours() -> None:
    driver = ModelDriver()
    device = dml.Device(driver)
    nodes = [NOT(WORDS, WORDS), XOR(WORDS, WORDS, WORDS), NOT(WORDS, WORDS)]
    edges = [To(0, 0, 0), Via(0, 0, 1, 0), To(1, 1, 1), Via(1, 0, 2, 0), Out(2, 0, 0)]
    (result,) = run(desc(device, nodes, *edges), device, A, B)
    assert np.array_equal(result, A ^ B)
    assert driver.model.calls == ["write", "write", "XOR", "read"]


def test_bytes_between_elements_are_seen_where_nothing_lies_there(device: dml.Device) -> None:
    """The written-out intermediate and the operators behind it have separate constants."""
    small = BufferTensorDesc(DataType.UINT8, [4, 4])
    apart = BufferTensorDesc(DataType.UINT8, [4, 4], [8, 1])
    rows = BufferTensorDesc(DataType.UINT32, [4], [2])
    words = BufferTensorDesc(DataType.UINT32, [4])
    nodes = [NOT(small, small), COUNT(small, apart), NOT(rows, words), COUNT(words, words)]
    edges = [To(0, 0, 0), *(Via(node, 0, node + 1, 0) for node in range(3)), Out(3, 0, 0)]
    data = np.arange(16, dtype=np.uint8).reshape(4, 4)
    (result,) = run(desc(device, nodes, *edges), device, data)
    counts = np.bitwise_count(~data)
    assert result.tolist() == np.bitwise_count(~counts.view(np.uint32)[:, 0]).tolist()


# --- Binding and memory -------------------------------------------------------------------------


def bench(graph: GraphDesc, device: dml.Device) -> tuple[dml.CompiledOperator, dml.BindingTable]:
    """Return the compiled and initialised graph, and a binding table for it."""
    operator = device.compile_graph(graph)
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    initializer = device.create_operator_initializer([operator])
    recorder.record_dispatch(commands, initializer, device.create_binding_table(initializer))
    device.execute(commands)
    return operator, device.create_binding_table(operator)


def test_outputs_take_no_place_of_inputs_or_of_each_other(device: dml.Device) -> None:
    operator, table = bench(distances(device, Out(0, 0, 1)), device)
    assert operator.binding_properties.required_descriptor_count == 4
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    memory = device.create_buffer(1024)

    def at(offset: int, size: int = 128) -> BufferBinding:
        return BufferBinding(memory, offset, size)

    table.bind_inputs([at(0), at(128)])
    for outputs, message in [
        ([at(256, 16), at(128)], "does not work in place"),
        ([at(256, 16), at(64)], "or none of them"),
        ([at(288, 16), at(256)], r"GraphOutputs\[1\]\.Buffer is bytes 256 to 383; .*288 to 303"),
    ]:
        table.bind_outputs(outputs)
        with pytest.raises(dml.DmlError, match=message):
            recorder.record_dispatch(commands, operator, table)
    table.bind_outputs([at(256, 16), at(272)])
    recorder.record_dispatch(commands, operator, table)


def test_names_of_edges_are_the_names_in_errors(device: dml.Device) -> None:
    edges = [To(0, 0, 0, "pixels"), Out(0, 0, 0, "negative")]
    _, table = bench(desc(device, ONE, *edges), device)
    with pytest.raises(dml.DmlError, match=r"pixels\.Buffer is not bound"):
        table.bind_inputs([None])
    with pytest.raises(dml.DmlError, match=r"negative\.Buffer is not bound"):
        table.bind_outputs([None])


def test_memory_for_what_is_in_between_is_taken_at_initialization() -> None:
    driver = ModelDriver(ops=frozenset(op for op in Op if not op.counts) | {Op.COUNT})
    device = dml.Device(driver)
    device.compile_graph(distances(device))
    assert driver.allocator.pieces == 0
    operator, _ = bench(distances(device), device)
    assert driver.allocator.pieces == 1
    device.close()
    assert driver.allocator.pieces == 0
    assert "initialized" in repr(operator)


def test_less_memory_than_is_fastest_is_enough() -> None:
    """Two chains side by side need twice the memory of one chain after the other."""
    size = 1 << 14
    wide = BufferTensorDesc(DataType.UINT8, [size])
    chain = [SHIFT_LEFT(wide, wide, wide), SHIFT_LEFT(wide, wide, wide), XOR(wide, wide, wide)]
    ends = BufferTensorDesc(DataType.UINT8, [16], None, TensorFlags.NONE, size)
    nodes = [*chain, *chain, NOT(ends, BufferTensorDesc(DataType.UINT8, [16]))]
    edges = [To(0, node, port) for node in (0, 3) for port in (0, 1)]
    for first in (0, 3):
        edges += [Via(first, 0, first + 1, port) for port in (0, 1)]
        edges += [Via(first + 1, 0, first + 2, 0), Via(first, 0, first + 2, 1)]
    edges += [Via(2, 0, 6, 0), Out(6, 0, 0), Out(5, 0, 1)]
    driver = ModelDriver(memory_bytes=5 * size)
    with dml.Device(driver) as device:
        graph = desc(device, nodes, *edges)
        program: Any = device.compile_graph(graph).desc
        plans = (allocate(program.memory.plan, sparing=sparing) for sparing in (False, True))
        roomy, sparing = (each.temporary for each in plans)
        assert roomy > sparing
        device.create_buffer(driver.allocator.largest() - sparing - 2 * size - 256)
        data = np.random.default_rng(5).integers(0, 256, size, np.uint8)
        small, large = run(graph, device, data)
    once = data << (data % 8)
    twice = once << (once % 8)
    assert np.array_equal(large, twice ^ once)
    assert np.array_equal(small, ~(twice ^ once)[:16])


# --- expressions ------------------------------------------------------------------------------


VALUES = np.random.default_rng(1).integers(0, 2**32, (3, 5), np.uint32)
COUNTS = np.random.default_rng(2).integers(0, 32, (3, 5), np.uint32)
MATRIX = BufferTensorDesc(DataType.UINT32, VALUES.shape)


@pytest.fixture
def graph() -> dml.Graph:
    return dml.Graph(dml.Device(ModelDriver()))


def pair(graph: dml.Graph) -> tuple[dml.Expression, dml.Expression]:
    return dml.input_tensor(graph, 0, MATRIX), dml.input_tensor(graph, 1, MATRIX)


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
    (got,) = graph.device.run(graph.desc([result]), [VALUES, COUNTS])
    assert np.array_equal(got, program(VALUES, COUNTS))


def test_distances_of_rows_are_written_as_a_sum_of_counts(graph: dml.Graph) -> None:
    a, b = pair(graph)
    distances = dml.reduce(dml.bit_count(a ^ b, DataType.UINT32), axes=[1])
    assert distances.output_desc == BufferTensorDesc(DataType.UINT32, [3, 1])
    (got,) = graph.device.run(graph.desc([distances]), [VALUES, COUNTS])
    assert np.array_equal(got, np.bitwise_count(VALUES ^ COUNTS).sum(axis=1, keepdims=True))


def test_all_axes_are_reduced_if_none_is_named(graph: dml.Graph) -> None:
    a, b = pair(graph)
    total = dml.reduce(dml.bit_count(a & b, DataType.UINT32))
    (got,) = graph.device.run(graph.desc([total]), [VALUES, COUNTS])
    assert got.tolist() == [[np.bitwise_count(VALUES & COUNTS).sum()]]


def test_counts_are_bytes_unless_asked_for(graph: dml.Graph) -> None:
    a, _ = pair(graph)
    (got,) = graph.device.run(graph.desc([dml.bit_count(a)]), [VALUES])
    assert got.dtype == np.uint8
    assert np.array_equal(got, np.bitwise_count(VALUES))


def test_reinterpreting_repeats_turns_and_splits(graph: dml.Graph) -> None:
    row = dml.input_tensor(graph, 0, BufferTensorDesc(DataType.UINT32, [5]))
    a = dml.input_tensor(graph, 1, MATRIX)
    difference = dml.reinterpret(row, DataType.UINT32, [3, 5], [0, 1]) ^ a
    halves = dml.reinterpret(difference, DataType.UINT16, [3, 5], [10, 2])
    turned = dml.reinterpret(difference, DataType.UINT32, [5, 3], [1, 5])
    got = graph.device.run(graph.desc([~turned, ~halves]), [VALUES[1], VALUES])
    assert np.array_equal(got[0], ~(VALUES ^ VALUES[1]).T)
    assert np.array_equal(got[1], ~(VALUES ^ VALUES[1]).astype(np.uint16))


def test_only_what_the_outputs_need_is_compiled(graph: dml.Graph) -> None:
    a, b = pair(graph)
    unused, used = a ^ b, ~a
    desc = graph.desc([used])
    assert (desc.input_count, len(desc.nodes), unused.graph) == (1, 1, graph)
    assert repr(graph) == "<bitlane.dml.Graph: operators: 2>"
