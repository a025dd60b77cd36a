"""DirectML's object model from end to end, step by step and in one call, without a circuit."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import (
    BufferTensorDesc,
    DataType,
    ExecutionFlags,
    Feature,
    FeatureLevel,
    OperatorType,
    TensorFlags,
)
from support.host.dml_bench import COUNT, NOT, SHIFT_LEFT, SHIFT_RIGHT, XOR, Bench
from support.host.model_link import ModelDriver
from support.host.refusals import literal, refused

U8 = BufferTensorDesc(DataType.UINT8, [4])


@pytest.mark.parametrize(
    ("desc", "inputs", "result"),
    [
        (NOT, [np.uint8([0, 128, 42, 255])], [255, 127, 213, 0]),
        (COUNT, [np.uint32([0, 123, 456, 789])], [0, 6, 4, 5]),
        # Counts are masked, and logical shifts fill with zeros.
        (
            SHIFT_RIGHT,
            [np.uint16([0x8000, 0xFFFF, 1, 3]), np.uint16([15, 16, 17, 65535])],
            [1, 0xFFFF, 0, 0],
        ),
    ],
    ids=["documented example of BIT_NOT", "documented example of BIT_COUNT", "shift"],
)
def test_operators_compute_what_is_documented(
    desc: Callable[..., dml.OperatorDesc], inputs: list[Any], result: list[int]
) -> None:
    tensor = BufferTensorDesc.from_array(inputs[0])
    device = dml.Device(ModelDriver())
    assert device.run(desc(*[tensor] * len(inputs), tensor), inputs).tolist() == result


@pytest.mark.parametrize("volatile", [False, True])
def test_bindings_are_read_when_recorded_or_if_volatile_when_executed(volatile: bool) -> None:
    flags = ExecutionFlags.DESCRIPTORS_VOLATILE if volatile else ExecutionFlags.NONE
    bench = Bench(NOT(U8, U8), flags)
    bench.buffer.write(np.repeat(np.uint8([1, 2]), 16))
    bench.table.bind_inputs([bench.at(0)])
    bench.table.bind_outputs([bench.at(32)])
    bench.record()
    bench.table.bind_inputs([bench.at(16)])
    bench.device.execute(bench.commands)
    assert bench.buffer.read(4, 32).tolist() == [253 if volatile else 254] * 4


def test_a_list_may_be_executed_again_and_several_at_once() -> None:
    bench = Bench(NOT(U8, U8), initialize=False)
    bench.buffer.write(np.zeros(4, dtype=np.uint8))
    first, second = bench.device.create_command_list(), bench.commands
    initializer = bench.device.create_operator_initializer([bench.operator])
    table = bench.device.create_binding_table(initializer)
    bench.recorder.record_dispatch(first, initializer, table)
    bench.table.bind_inputs([bench.at(0)])
    bench.table.bind_outputs([bench.at(0)])
    bench.record()
    assert (len(first), len(second)) == (1, 1)
    bench.device.execute(first, second)
    assert bench.buffer.read(4).tolist() == [255] * 4
    bench.device.execute(second)
    assert bench.buffer.read(4).tolist() == [0] * 4


def test_an_initializer_can_be_reset_to_other_operators() -> None:
    device = dml.Device(ModelDriver())
    operator = device.create_operator(NOT(U8, U8))
    first, second = (device.compile_operator(operator) for _ in range(2))
    initializer = device.create_operator_initializer([first])
    initializer.reset([second])
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    recorder.record_dispatch(commands, initializer, device.create_binding_table(initializer))
    device.execute(commands)
    assert (first.initialized, second.initialized) == (False, True)
    with pytest.raises(dml.DmlError, match="initialized already"):
        initializer.reset([second])


# --- buffers ----------------------------------------------------------------------------------


def test_buffers_hold_whole_words() -> None:
    device = dml.Device(ModelDriver())
    assert [device.create_buffer(size).size_in_bytes for size in (1, 4, 5, 8)] == [4, 4, 8, 8]


def test_buffers_take_and_give_arrays() -> None:
    buffer = dml.Device(ModelDriver()).create_buffer(32)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer.write(values[:, ::-1], offset=4)
    assert buffer.read(24, 4, np.float32).tolist() == [2, 1, 0, 5, 4, 3]
    assert buffer.read(offset=28, dtype=np.float64).size == 0
    got = buffer.read(4)
    got[0] ^= 255  # the caller's own copy
    assert buffer.read(4)[0] == got[0] ^ 255


def test_scattered_contents_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(NOT(U8, U8))
    monkeypatch.setattr("bitlane.dml.buffer.PIECE", 40)
    values = np.arange(60, dtype=np.uint32).reshape(6, 10).T[::-1]
    buffer = bench.device.create_buffer(256)
    buffer.write(values, 16)
    assert np.array_equal(buffer.read(240, 16, np.uint32), values.reshape(-1))
    assert bench.model.calls == ["write"] * 6 + ["read"]


def test_buffers_refuse_parts_of_elements() -> None:
    buffer = dml.Device(ModelDriver()).create_buffer(8)
    with pytest.raises(ValueError, match="6 bytes are not a whole number of uint32"):
        buffer.read(6, dtype=np.uint32)


def test_closing_gives_memory_back_once() -> None:
    driver = ModelDriver()
    with dml.Device(driver) as device:
        with device.create_buffer(8) as buffer:
            assert driver.allocator.pieces == 1
        assert driver.allocator.pieces == 0
        buffer.close()
        with pytest.raises(dml.DmlError, match="closed"):
            buffer.read()
        device.create_buffer(8)
    assert driver.allocator.pieces == 0


# --- devices ----------------------------------------------------------------------------------


def test_wraps_what_has_a_runtime() -> None:
    class Wrapper:
        driver = ModelDriver()

    assert dml.Device(Wrapper()).driver is Wrapper.driver


def test_reports_data_types_by_level() -> None:
    def supported(level: FeatureLevel) -> set[str]:
        device = dml.Device(ModelDriver(), level)
        ask = partial(device.check_feature_support, Feature.TENSOR_DATA_TYPE_SUPPORT)
        return {data_type.name for data_type in DataType if ask(data_type)}

    narrow = {"FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32", "INT16", "INT8"}
    for level in FeatureLevel:
        wide = {"FLOAT64", "UINT64", "INT64"} if level >= FeatureLevel.LEVEL_3_0 else set()
        assert supported(level) == narrow | wide


def test_reports_the_highest_level_asked_for() -> None:
    device = dml.Device(ModelDriver())
    assert device.feature_level is FeatureLevel.LEVEL_4_1
    levels = [FeatureLevel.LEVEL_6_4, FeatureLevel.LEVEL_3_0, FeatureLevel.LEVEL_2_0]
    assert device.check_feature_support(Feature.FEATURE_LEVELS, levels) == levels[1]


def test_numbers_of_features_are_directmls() -> None:
    device: Any = dml.Device(ModelDriver())
    assert device.check_feature_support(0, 5) is True


def test_objects_tell_what_they_are() -> None:
    bench = Bench(NOT(U8, U8))
    bench.bind(bench.at(0), bench.at(16))
    bench.record()
    name = "DML_OPERATOR_ELEMENT_WISE_BIT_NOT"
    for thing, told in (
        (bench.device, "Device: feature level 4_1"),
        (bench.operator, f"CompiledOperator: {name}, initialized"),
        (bench.device.create_operator(NOT(U8, U8)), f"Operator: {name}"),
        (bench.commands, "CommandList: dispatches: 1"),
        (bench.recorder, f"CommandRecorder of {bench.device}"),
        (bench.table, f"BindingTable of {bench.operator}"),
        (bench.device.create_operator_initializer([]), "OperatorInitializer: operators: 0"),
        (bench.buffer, f"Buffer: 256 bytes, at {bench.buffer.address:#x}"),
    ):
        assert repr(thing) == f"<bitlane.dml.{told}>"
    bench.buffer.close()
    assert repr(bench.buffer) == "<bitlane.dml.Buffer: 256 bytes, closed>"
    assert bench.device.create_command_list("layer 1").label == "layer 1"


# --- operators in one call --------------------------------------------------------------------


A = np.arange(6, dtype=np.uint16).reshape(2, 3)


def tensor(strides: list[int] | None = None, **fields: Any) -> BufferTensorDesc:
    return BufferTensorDesc(DataType.from_numpy(A.dtype), A.shape, strides, **fields)


def run(desc: dml.OperatorDesc, *inputs: Any) -> Any:
    driver = ModelDriver()
    with dml.Device(driver) as device:
        result = device.run(desc, inputs)
        assert driver.allocator.pieces == 0
        return result


@pytest.mark.parametrize("flags", list(TensorFlags))
def test_the_result_has_the_type_and_sizes_of_the_output(flags: TensorFlags) -> None:
    result = run(XOR(tensor(), tensor(flags=flags), tensor()), A, A[::-1])
    assert result.dtype == A.dtype
    assert np.array_equal(result, A ^ A[::-1])


def test_the_result_belongs_to_the_caller() -> None:
    result = run(NOT(tensor(), tensor()), A)
    result += 1
    assert np.array_equal(result, ~A + 1)


def test_inputs_are_what_the_memory_of_their_tensors_holds() -> None:
    row, padded = np.uint16([1, 2, 3]), np.uint16([10, 20, 30, 99, 40, 50, 60])
    result = run(XOR(tensor([0, 1]), tensor([4, 1]), tensor([1, 2])), row, padded)
    assert result.tolist() == [[1 ^ 10, 2 ^ 20, 3 ^ 30], [1 ^ 40, 2 ^ 50, 3 ^ 60]]
    assert result.strides == (2, 4)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([A], "Run.BindingCount is 1; expected 2"),
        ([A, A.astype(np.int16)], "BTensor.DataType is 'int16'; expected uint16, as its tensor"),
        ([A, A.astype(">u2")], "BTensor.DataType is '>u2'; expected uint16"),
        ([A, np.zeros(7, A.dtype)], "BTensor.Data is of 14 bytes; expected 12 bytes"),
        ([A[:1], A], "ATensor.Data is of 6 bytes; expected 12 bytes, from its first"),
        ([A, None], "BTensor.DataType is 'object'"),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[Any], message: str) -> None:
    device = dml.Device(ModelDriver())
    with refused(device, dml.DmlError, literal(message)):
        device.run(SHIFT_LEFT(tensor(), tensor(), tensor()), inputs)


# --- types and descriptions -------------------------------------------------------------------


def test_enumerations_have_directmls_values() -> None:
    names = "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64"
    assert {x.name: x.value for x in DataType} == {x: k for k, x in enumerate(names.split())}
    levels = "1.0 2.0 2.1 3.0 3.1 4.0 4.1 5.0 5.1 5.2 6.0 6.1 6.2 6.3 6.4".replace(".", "")
    assert [hex(level) for level in FeatureLevel] == [f"0x{x}00" for x in levels.split()]
    assert str(FeatureLevel.LEVEL_4_1) == "4_1"
    operators = {"SHIFT_LEFT": 97, "SHIFT_RIGHT": 98, "AND": 121, "OR": 122, "XOR": 123}
    operators |= {"NOT": 124, "COUNT": 125}
    wanted = {f"DML_OPERATOR_ELEMENT_WISE_BIT_{name}": x for name, x in operators.items()}
    wanted["DML_OPERATOR_REDUCE"] = 55
    assert {str(member): member.value for member in OperatorType} == wanted


@pytest.mark.parametrize("data_type", list(DataType)[1:])
def test_data_types_and_numpy_types_map_both_ways(data_type: DataType) -> None:
    digits = "".join(filter(str.isdigit, data_type.name))
    assert data_type.itemsize == int(digits) // 8
    assert DataType.from_numpy(data_type.dtype) is data_type
    assert DataType.from_numpy(data_type.dtype.newbyteorder(">")) is data_type


def test_unknown_has_no_size() -> None:
    with pytest.raises(ValueError, match="UNKNOWN"):
        _ = DataType.UNKNOWN.itemsize


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "size"),
    [
        (DataType.UINT8, [1], None, 4),
        (DataType.UINT8, [4], None, 4),
        (DataType.UINT8, [5], None, 8),
        (DataType.FLOAT32, [1, 1, 2, 3], None, 24),
        (DataType.FLOAT32, [1, 1, 2, 3], [6, 6, 3, 1], 24),
        (DataType.FLOAT16, [2, 3], [4, 1], 16),  # the last row is not padded: 7 elements
        (DataType.UINT32, [5, 5], [0, 0], 4),
        (DataType.UINT64, [3], [2], 40),
        (DataType.UINT8, [2**31, 3], [1, 2**31], 3 * 2**31),  # 32-bit arithmetic would wrap
    ],
)
def test_buffer_sizes(
    data_type: DataType, sizes: list[int], strides: list[int] | None, size: int
) -> None:
    assert dml.calc_buffer_tensor_size(data_type, sizes, strides) == size
    assert BufferTensorDesc(data_type, sizes, strides).total_tensor_size_in_bytes == size


def test_descriptions_take_numpy_integers_and_compare_by_value() -> None:
    sizes = np.array([2, 3])
    desc = BufferTensorDesc(DataType.UINT8, [int(size) for size in sizes])
    assert BufferTensorDesc(DataType.UINT8, tuple(sizes)) == desc
    assert desc.dimension_count == 2
    assert hash(desc) == hash(BufferTensorDesc(DataType.UINT8, [2, 3]))


def test_descriptions_cannot_be_changed() -> None:
    desc = BufferTensorDesc(DataType.UINT8, [2])
    with pytest.raises(AttributeError):
        desc.sizes = (3,)  # type: ignore[misc]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.int16).reshape(3, 4),
        np.arange(12, dtype=np.uint32).reshape(3, 4).T[:, ::2],
        np.broadcast_to(np.uint8(1), (2, 2)),
        np.array(7, np.uint64),
    ],
    ids=["packed", "turned", "repeated", "rank 0"],
)
def test_a_description_of_an_array_is_that_of_what_a_buffer_gets(array: Any) -> None:
    tensor = BufferTensorDesc.from_array(array, TensorFlags.OWNED_BY_DML)
    assert tensor.data_type.dtype == array.dtype
    assert tensor.flags is TensorFlags.OWNED_BY_DML
    with dml.Device(ModelDriver()) as device:
        buffer = device.create_buffer(tensor.total_tensor_size_in_bytes)
        buffer.write(array)
        written = buffer.read(array.nbytes, dtype=array.dtype).reshape(tensor.sizes)
    assert np.array_equal(written, np.atleast_1d(array))
    assert tensor.strides is None
