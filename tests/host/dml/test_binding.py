"""A bad binding, or a wrong number of bindings, is refused by name, as in DirectML."""

from typing import Any

import pytest

from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType
from support.host.dml_bench import NOT, U8, XOR, Bench
from support.host.model_driver import ModelDriver

UNBOUND = "a buffer when the operator is executed"


def described(**fields: Any) -> BufferTensorDesc:
    return BufferTensorDesc(DataType.UINT8, [16], **fields)


@pytest.mark.parametrize(
    ("tensor", "offset", "size", "found", "expected"),
    [
        *((U8, n, 16, f"Offset is {n}", "a multiple of 16") for n in (1, 4, 8, 15, 17, -16, -1)),
        (described(guaranteed_base_offset_alignment=64), 16, 16, "Offset is 16", "64"),
        (described(guaranteed_base_offset_alignment=4), 4, 16, "Offset is 4", "16"),
        *((U8, 0, n, f"SizeInBytes is {n}", "at least 16") for n in (0, 12, 15, -4)),
        (described(total_tensor_size_in_bytes=100), 0, 99, "SizeInBytes is 99", "100"),
        (U8, 0, 257, "SizeInBytes is 257", "at most 256"),
        (U8, 240, 17, "SizeInBytes is 17", "at most 16"),
        (U8, 256, 16, "SizeInBytes is 16", "at most 0"),
        (U8, 256, None, "SizeInBytes is 0", "at least 16"),
        (U8, 272, None, "Offset is 272", "inside the buffer's 256 bytes"),
    ],
)
def test_ranges_are_aligned_hold_the_tensor_and_end_inside_the_buffer(
    tensor: BufferTensorDesc, offset: int, size: int | None, found: str, expected: str
) -> None:
    bench = Bench(NOT(tensor, tensor))
    binding, table = bench.at(offset, size), bench.table
    bench.refuse(lambda: table.bind_inputs([binding]), f"InputTensor.{found}", expected)
    bench.refuse(lambda: table.bind_outputs([binding]), f"OutputTensor.{found}", expected)


@pytest.mark.parametrize(
    ("tensor", "offset", "size"),
    [(U8, 240, None), (described(guaranteed_base_offset_alignment=64), 64, 16)],
)
def test_ranges_that_fit(tensor: BufferTensorDesc, offset: int, size: int | None) -> None:
    bench = Bench(NOT(tensor, tensor))
    bench.table.bind_inputs([bench.at(offset, size)])


OTHER = BufferBinding(dml.Device(ModelDriver()).create_buffer(16))
ONE, TWO = NOT(U8, U8), XOR(U8, U8, U8)


@pytest.mark.parametrize(
    ("desc", "bind", "places", "found", "expected"),
    [
        (ONE, "bind_inputs", [OTHER], "InputTensor.Buffer is of another device", "this device"),
        (ONE, "bind_inputs", [[]], "InputTensor.BindingType is of type list", "a BufferBinding"),
        (TWO, "bind_inputs", [0], "BindInputs.BindingCount is 1", "2"),
        (TWO, "bind_inputs", [0, 0, 0], "BindInputs.BindingCount is 3", "2"),
        (TWO, "bind_outputs", [0, 16], "BindOutputs.BindingCount is 2", "1"),
        (TWO, "bind_inputs", [0, None], "BTensor.Buffer is not bound", UNBOUND),
        (ONE, "bind_outputs", [None], "OutputTensor.Buffer is not bound", UNBOUND),
    ],
)
def test_bindings_are_as_many_buffers_of_the_device_as_the_operator_has(
    desc: dml.OperatorDesc, bind: str, places: list[Any], found: str, expected: str
) -> None:
    """Numbers in ``places`` are offsets into the bench's buffer."""
    bench = Bench(desc)
    bindings = [bench.at(x) if isinstance(x, int) else x for x in places]
    bench.refuse(lambda: getattr(bench.table, bind)(bindings), found, expected)


def test_closed_buffers_are_found_when_bound_and_when_executed() -> None:
    bench = Bench(NOT(U8, U8))
    bench.dispatch(bench.at(0), bench.at(16))
    closed = bench.at(0)
    bench.buffer.close()
    bench.refuse_execution("RecordDispatch.Buffer is closed", "exist")
    bench.refuse(
        lambda: bench.table.bind_inputs([closed]), "InputTensor.Buffer is closed", "exists"
    )


def test_nothing_is_bound_at_first_nor_after_unbinding_nor_after_a_reset() -> None:
    bench = Bench(NOT(U8, U8))
    bench.table.bind_inputs([bench.at(0)])
    bench.refuse(bench.record, "OutputTensor.Buffer is not bound", UNBOUND)
    refusal = ("InputTensor.Buffer is not bound", UNBOUND)
    bench.table.reset(bench.operator)
    bench.table.bind_outputs([bench.at(0)])
    bench.refuse(bench.record, *refusal)
    bench.table.bind_inputs([bench.at(16)])
    bench.record()
    bench.table.bind_inputs([])
    bench.refuse(bench.record, *refusal)
    bench.table.bind_inputs([bench.at(16)])
    bench.table.reset(bench.operator)
    bench.refuse(bench.record, *refusal)


@pytest.mark.parametrize("name", ["temporary", "persistent"])
def test_resources_that_are_not_needed_are_refused(name: str) -> None:
    bench = Bench(NOT(U8, U8))
    properties = bench.operator.binding_properties
    assert properties.required_descriptor_count == 2
    assert getattr(properties, f"{name}_resource_size") == 0
    bind = getattr(bench.table, f"bind_{name}_resource")
    bind(None)
    found = f"{name.title()}Resource.Buffer is bound"
    bench.refuse(lambda: bind(bench.at(0)), found, "its size is 0")
