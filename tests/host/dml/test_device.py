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
    TensorFlags,
)
from support.host.dml_bench import COUNT, NOT, SHIFT_LEFT, SHIFT_RIGHT, XOR, Bench
from support.host.model_driver import ModelDriver

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


# --- Buffers ----------------------------------------------------------------------------------


def test_buffers_hold_whole_words() -> None:
    device = dml.Device(ModelDriver())
    assert [device.create_buffer(size).size_in_bytes for size in (1, 4, 5, 8)] == [4, 4, 8, 8]


@pytest.mark.parametrize("size", [0, -4])
def test_buffers_are_not_empty(size: int) -> None:
    with pytest.raises(dml.DmlError, match=f"SizeInBytes is {size}; expected at least 1"):
        dml.Device(ModelDriver()).create_buffer(size)


def test_buffers_take_and_give_arrays() -> None:
    buffer = dml.Device(ModelDriver()).create_buffer(32)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer.write(values[:, ::-1], offset=4)
    assert buffer.read(24, 4, np.float32).tolist() == [2, 1, 0, 5, 4, 3]
    assert buffer.read(offset=28, dtype=np.float64).size == 0
    got = buffer.read(4)
    got[0] ^= 255  # the caller's own copy
    assert buffer.read(4)[0] == got[0] ^ 255


@pytest.mark.parametrize(("offset", "size"), [(-1, 1), (0, 9), (8, 1), (4, 5)])
def test_buffers_refuse_bytes_outside(offset: int, size: int) -> None:
    driver = ModelDriver()
    buffer = dml.Device(driver).create_buffer(8)
    with pytest.raises(dml.DmlError, match="inside the buffer's 8"):
        buffer.write(np.zeros(size, np.uint8), offset)
    with pytest.raises(dml.DmlError, match="inside the buffer's 8"):
        buffer.read(size, offset)
    assert driver.model.calls == []


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


# --- Devices ----------------------------------------------------------------------------------


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
    with pytest.raises(dml.DmlError, match="a level of 4_1 or below") as caught:
        device.check_feature_support(Feature.FEATURE_LEVELS, levels[:1])
    assert caught.value.hresult == "DXGI_ERROR_UNSUPPORTED"


def test_objects_of_another_device_are_refused() -> None:
    one, other = dml.Device(ModelDriver()), dml.Device(ModelDriver())
    operator = one.create_operator(NOT(U8, U8))
    compiled = one.compile_operator(operator)
    for action in (
        lambda: other.compile_operator(operator),
        lambda: other.create_operator_initializer([compiled]),
        lambda: other.execute(one.create_command_list()),
    ):
        with pytest.raises(dml.DmlError, match="another device"):
            action()
    table = one.create_binding_table(compiled)
    with pytest.raises(dml.DmlError, match="another device"):
        one.create_command_recorder().record_dispatch(other.create_command_list(), compiled, table)


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
        ([A], r"Run\.BindingCount is 1; expected 2"),
        (
            [A, A.astype(np.int16)],
            r"BTensor\.DataType is 'int16'; expected uint16, as its tensor has",
        ),
        ([A, A.astype(">u2")], r"BTensor\.DataType is '>u2'; expected uint16"),
        ([A, np.zeros(7, A.dtype)], r"BTensor\.Data is of 14 bytes; expected 12 bytes"),
        ([A[:1], A], r"ATensor\.Data is of 6 bytes; expected 12 bytes, from its first"),
        ([A, None], r"BTensor\.DataType is 'object'"),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[Any], message: str) -> None:
    driver = ModelDriver()
    device = dml.Device(driver)
    with pytest.raises(dml.DmlError, match=message):
        device.run(SHIFT_LEFT(tensor(), tensor(), tensor()), inputs)
    with pytest.raises(dml.DmlError, match=r"Run\.Inputs is 3"):
        device.run(NOT(tensor(), tensor()), 3)  # type: ignore[arg-type]
    assert driver.model.calls == []
    assert driver.allocator.pieces == 0
