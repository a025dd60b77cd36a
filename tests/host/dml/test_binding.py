"""A bad binding, or a wrong number of bindings, is refused by name, as in DirectML."""

from functools import partial

import pytest

from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType
from support.host.dml_bench import NOT, U8, XOR, Bench
from support.host.model_driver import ModelDriver

# --- Each binding by itself -------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1, 4, 8, 15, 17, -16, -1])
def test_offsets_are_multiples_of_16(offset: int) -> None:
    bench = Bench(NOT(U8, U8))
    for bind, name in (
        (bench.table.bind_inputs, "InputTensor"),
        (bench.table.bind_outputs, "OutputTensor"),
    ):
        bindings = [bench.at(offset)]
        bench.refuse(partial(bind, bindings), f"{name}.Offset is {offset}", "a multiple of 16")


def test_offsets_are_multiples_of_the_guaranteed_alignment() -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [16], guaranteed_base_offset_alignment=64)
    bench = Bench(NOT(tensor, U8))
    bench.table.bind_inputs([bench.at(64)])
    bench.refuse(lambda: bench.table.bind_inputs([bench.at(16)]), "InputTensor.Offset is 16", "64")


def test_a_small_guaranteed_alignment_does_not_lower_the_16() -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [16], guaranteed_base_offset_alignment=4)
    bench = Bench(NOT(tensor, U8))
    bench.refuse(lambda: bench.table.bind_inputs([bench.at(4)]), "InputTensor.Offset is 4", "16")


@pytest.mark.parametrize("size", [0, 12, 15, -4])
def test_ranges_hold_the_tensor(size: int) -> None:
    bench = Bench(NOT(U8, U8))
    for bind, name in (
        (bench.table.bind_inputs, "InputTensor"),
        (bench.table.bind_outputs, "OutputTensor"),
    ):
        bindings = [bench.at(0, size)]
        bench.refuse(partial(bind, bindings), f"{name}.SizeInBytes is {size}", "at least 16")


def test_ranges_hold_the_total_size_asked_for() -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [16], total_tensor_size_in_bytes=100)
    bench = Bench(NOT(tensor, U8))
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(0, 99)]), "InputTensor.SizeInBytes is 99", "100"
    )


@pytest.mark.parametrize(("offset", "size", "most"), [(0, 257, 256), (240, 17, 16), (256, 16, 0)])
def test_ranges_end_inside_the_buffer(offset: int, size: int, most: int) -> None:
    bench = Bench(NOT(U8, U8))
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(offset, size)]),
        f"InputTensor.SizeInBytes is {size}",
        f"at most {most}",
    )


def test_ranges_begin_inside_the_buffer() -> None:
    bench = Bench(NOT(U8, U8))
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(272, None)]),
        "InputTensor.Offset is 272",
        "inside the buffer's 256 bytes",
    )


def test_a_range_without_a_size_goes_to_the_end() -> None:
    bench = Bench(NOT(U8, U8))
    bench.table.bind_inputs([bench.at(240, None)])
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(256, None)]),
        "InputTensor.SizeInBytes is 0",
        "at least 16",
    )


def test_buffers_belong_to_the_device() -> None:
    bench = Bench(NOT(U8, U8))
    other = dml.Device(ModelDriver()).create_buffer(16)
    bench.refuse(
        lambda: bench.table.bind_inputs([BufferBinding(other)]),
        "InputTensor.Buffer is of another device",
        "this device",
    )


def test_closed_buffers_are_not_bound() -> None:
    bench = Bench(NOT(U8, U8))
    bench.buffer.close()
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(0)]), "InputTensor.Buffer is closed", "exists"
    )


def test_buffers_closed_after_recording_are_found() -> None:
    bench = Bench(NOT(U8, U8))
    bench.table.bind_inputs([bench.at(0)])
    bench.table.bind_outputs([bench.at(16)])
    bench.record()
    bench.buffer.close()
    bench.refuse(
        lambda: bench.device.execute(bench.commands), "RecordDispatch.Buffer is closed", "exist"
    )


# --- How many, and which ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_inputs_as_the_operator_has(count: int) -> None:
    bench = Bench(XOR(U8, U8, U8))
    bindings = [bench.at(0)] * count
    bench.refuse(
        lambda: bench.table.bind_inputs(bindings), f"BindInputs.BindingCount is {count}", "2"
    )


def test_as_many_outputs_as_the_operator_has() -> None:
    bench = Bench(XOR(U8, U8, U8))
    bindings = [bench.at(0), bench.at(16)]
    bench.refuse(lambda: bench.table.bind_outputs(bindings), "BindOutputs.BindingCount is 2", "1")


def test_every_input_is_bound() -> None:
    bench = Bench(XOR(U8, U8, U8))
    bench.refuse(
        lambda: bench.table.bind_inputs([bench.at(0), None]),
        "BTensor.Buffer is not bound",
        "a buffer when the operator is executed",
    )


def test_the_output_is_bound() -> None:
    bench = Bench(NOT(U8, U8))
    expected = "a buffer when the operator is executed"
    bench.refuse(
        lambda: bench.table.bind_outputs([None]), "OutputTensor.Buffer is not bound", expected
    )
    bench.table.bind_inputs([bench.at(0)])
    bench.refuse(bench.record, "OutputTensor.Buffer is not bound", expected)


def test_nothing_is_bound_at_first_nor_after_unbinding_nor_after_a_reset() -> None:
    bench = Bench(NOT(U8, U8))
    refusal = ("InputTensor.Buffer is not bound", "a buffer when the operator is executed")
    bench.table.bind_outputs([bench.at(0)])
    bench.refuse(bench.record, *refusal)
    bench.table.bind_inputs([bench.at(16)])
    bench.record()
    bench.table.bind_inputs([])
    bench.refuse(bench.record, *refusal)
    bench.table.bind_inputs([bench.at(16)])
    bench.table.reset(bench.operator)
    bench.refuse(bench.record, *refusal)


def test_only_bindings_are_bound() -> None:
    bench = Bench(NOT(U8, U8))
    bench.refuse(
        lambda: bench.table.bind_inputs([[bench.at(0)]]),
        "InputTensor.BindingType is of type list",
        "a BufferBinding",
    )


@pytest.mark.parametrize("name", ["TemporaryResource", "PersistentResource"])
def test_resources_that_are_not_needed_are_refused(name: str) -> None:
    bench = Bench(NOT(U8, U8))
    assert bench.operator.binding_properties.required_descriptor_count == 2
    assert bench.operator.binding_properties.temporary_resource_size == 0
    assert bench.operator.binding_properties.persistent_resource_size == 0
    temporary = name == "TemporaryResource"
    table = bench.table
    bind = table.bind_temporary_resource if temporary else table.bind_persistent_resource
    bind(None)
    bench.refuse(lambda: bind(bench.at(0)), f"{name}.Buffer is bound", "its size is 0")
