"""Which inputs and outputs may share bytes, and which may not."""

from typing import Any

import pytest

from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, DmlError
from support.host.dml_bench import COUNT, NOT, SHIFT_LEFT, SHIFT_RIGHT, U8, XOR, Bench
from support.host.model_driver import ModelDriver

ROWS = BufferTensorDesc(DataType.UINT8, [4, 4])
COLUMNS = BufferTensorDesc(DataType.UINT8, [4, 4], [1, 4])
LARGER = BufferTensorDesc(DataType.UINT8, [16], total_tensor_size_in_bytes=32)


@pytest.mark.parametrize(
    ("inputs", "output"),
    [
        ((0, 16), 32),
        ((0, 0), 16),  # inputs may be the same
        ((0, 16), 0),  # in place of A
        ((16, 0), 0),  # in place of B
        ((0, 0), 0),  # in place of both
        ((16, 32), 0),
    ],
)
def test_disjoint_or_identical_ranges_are_fine(inputs: tuple[int, int], output: int) -> None:
    bench = Bench(XOR(U8, U8, U8))
    bench.dispatch(*map(bench.at, inputs), bench.at(output))
    bench.device.execute(bench.commands)
    assert bench.model.calls == ["XOR"]


@pytest.mark.parametrize("kind", [SHIFT_LEFT, SHIFT_RIGHT])
@pytest.mark.parametrize("inputs", [(0, 16), (16, 0)])
def test_shifts_work_in_place_of_one_input(kind: Any, inputs: tuple[int, int]) -> None:
    bench = Bench(kind(U8, U8, U8))
    bench.dispatch(*map(bench.at, inputs), bench.at(0))


def test_inputs_may_overlap_each_other_in_part() -> None:
    bench = Bench(XOR(U8, U8, U8))
    bench.dispatch(bench.at(0, 32), bench.at(16, 32), bench.at(48))


def test_the_same_offsets_of_different_buffers_do_not_overlap() -> None:
    bench = Bench(COUNT(U8, U8))
    bench.dispatch(bench.at(0), BufferBinding(bench.device.create_buffer(16)))


def test_in_place_takes_packed_strides_written_out() -> None:
    implied = BufferTensorDesc(DataType.UINT8, [1, 4, 4])
    bench = Bench(NOT(implied, BufferTensorDesc(DataType.UINT8, [1, 4, 4], [99, 4, 1])))
    bench.dispatch(bench.at(0), bench.at(0))


@pytest.mark.parametrize(
    ("a", "b", "output", "name"),
    [
        ((0, 32), (64, 16), (16, 16), "ATensor"),  # inside
        ((16, 16), (64, 16), (0, 48), "ATensor"),  # around
        ((64, 16), (0, 32), (16, 32), "BTensor"),  # behind
        ((64, 16), (16, 32), (0, 32), "BTensor"),  # before
        ((0, 16), (64, 16), (0, 32), "ATensor"),  # same start
        ((16, 16), (64, 16), (0, 32), "ATensor"),  # same end
    ],
)
def test_partial_overlap_is_never_allowed(
    a: tuple[int, int], b: tuple[int, int], output: tuple[int, int], name: str
) -> None:
    bench = Bench(XOR(U8, U8, U8))
    shown = f"bytes {output[0]} to {output[0] + output[1] - 1}"
    bench.refuse_dispatch(
        [bench.at(*a), bench.at(*b), bench.at(*output)],
        f"OutputTensor.Buffer is {shown}",
        f"the same bytes as {name}",
    )


BOTH = "OutputTensor.Buffer is in place of ATensor and BTensor"


@pytest.mark.parametrize(
    ("desc", "size", "found", "expected"),
    [
        (COUNT(U8, U8), 16, "OutputTensor.Buffer is bytes 0 to 15", "COUNT does not work in place"),
        (SHIFT_LEFT(U8, U8, U8), 16, BOTH, "one input at most"),
        (SHIFT_RIGHT(U8, U8, U8), 16, BOTH, "one input at most"),
        (NOT(ROWS, COLUMNS), 16, "OutputTensor.Strides is [1, 4]", "[4, 1], as in InputTensor"),
        (NOT(U8, LARGER), 32, "OutputTensor.TotalTensorSizeInBytes is 32", "16, as in InputTensor"),
    ],
)
def test_what_does_not_work_in_place(desc: Any, size: int, found: str, expected: str) -> None:
    bench = Bench(desc)
    bindings = [bench.at(0, size)] * (1 + len(desc.inputs))
    bench.refuse_dispatch(bindings, found, expected)


def test_a_table_can_be_bound_anew_without_a_false_alarm() -> None:
    bench = Bench(COUNT(U8, U8))
    bench.dispatch(bench.at(0), bench.at(16))
    bench.bind(bench.at(0), bench.at(16))
    bench.record()
    bench.table.bind_inputs([bench.at(16)])  # for a moment, input and output are the same
    bench.table.bind_outputs([bench.at(0)])
    bench.record()


@pytest.mark.parametrize(
    ("write", "sizes", "strides", "message"),
    [
        (
            dml.bit_xor,
            [4, 4],
            [1, 4],
            "GraphOutputs[0].Strides is [4, 1]; expected [1, 4], as in Nodes[0].BTensor",
        ),
        (dml.bit_and, [4, 4], [0, 1], "expected [0, 1], as in Nodes[0].BTensor"),
        (dml.bit_shift_left, [4, 4], [4, 1], "in place of Nodes[0].ATensor and Nodes[0].BTensor"),
    ],
)
def test_a_graph_that_reads_an_input_twice_is_judged_by_each_reader(
    write: Any, sizes: list[int], strides: list[int], message: str
) -> None:
    driver = ModelDriver()
    with dml.Device(driver) as device:
        graph = dml.Graph(device)
        a = dml.input_tensor(graph, 0, ROWS)
        operator = graph.compile([write(a, dml.reinterpret(a, DataType.UINT8, sizes, strides))])
        table = device.create_binding_table(operator)
        both = [BufferBinding(device.create_buffer(16))]
        table.bind_inputs(both)
        table.bind_outputs(both)
        recorder, commands = device.create_command_recorder(), device.create_command_list()
        with pytest.raises(DmlError) as caught:
            recorder.record_dispatch(commands, operator, table)
        assert message in str(caught.value)
        assert driver.model.calls == []
