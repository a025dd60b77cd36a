"""DirectML's object model from end to end, on a device without a circuit."""

from functools import partial

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import (
    BufferBinding,
    BufferTensorDesc,
    DataType,
    ExecutionFlags,
    Feature,
    FeatureLevel,
    TensorFlags,
)
from bitlane.dml.operators import OperatorDesc
from support.host.model_driver import ModelDriver


def execute(
    device: dml.Device, desc: OperatorDesc, inputs: list[BufferBinding], output: BufferBinding
) -> None:
    """What a DirectML program does with one operator."""
    operator = device.compile_operator(device.create_operator(desc))
    recorder = device.create_command_recorder()
    commands = device.create_command_list()
    initializer = device.create_operator_initializer([operator])
    table = device.create_binding_table(initializer)
    recorder.record_dispatch(commands, initializer, table)
    table.reset(operator)
    table.bind_inputs(inputs)
    table.bind_outputs([output])
    recorder.record_dispatch(commands, operator, table)
    device.execute(commands)


def test_executes_the_documented_example_of_bit_not() -> None:
    device = dml.Device(ModelDriver())
    source, target = device.create_buffer(4), device.create_buffer(4)
    source.write(np.array([[0, 128], [42, 255]], dtype=np.uint8))
    tensor = BufferTensorDesc(DataType.UINT8, [2, 2])
    desc = dml.ElementWiseBitNotOperatorDesc(tensor, tensor)
    execute(device, desc, [BufferBinding(source)], BufferBinding(target))
    assert target.read().tolist() == [255, 127, 213, 0]


def test_executes_the_documented_example_of_bit_count() -> None:
    device = dml.Device(ModelDriver())
    source, target = device.create_buffer(16), device.create_buffer(16)
    source.write(np.array([0, 123, 456, 789], dtype=np.uint32))
    tensor = BufferTensorDesc(DataType.UINT32, [2, 2])
    desc = dml.ElementWiseBitCountOperatorDesc(tensor, tensor)
    execute(device, desc, [BufferBinding(source)], BufferBinding(target))
    assert target.read(dtype=np.uint32).tolist() == [0, 6, 4, 5]


def test_shifts_mask_their_counts_and_fill_with_zero() -> None:
    device = dml.Device(ModelDriver())
    a, b, out = (device.create_buffer(8) for _ in range(3))
    a.write(np.array([0x8000, 0xFFFF, 1, 3], dtype=np.uint16))
    b.write(np.array([15, 16, 17, 65535], dtype=np.uint16))
    tensor = BufferTensorDesc(DataType.UINT16, [4])
    desc = dml.ElementWiseBitShiftRightOperatorDesc(tensor, tensor, tensor)
    execute(device, desc, [BufferBinding(a), BufferBinding(b)], BufferBinding(out))
    assert out.read(dtype=np.uint16).tolist() == [1, 0xFFFF, 0, 0]


def test_honours_strides_and_offsets() -> None:
    device = dml.Device(ModelDriver())
    buffer = device.create_buffer(64)
    buffer.write(np.arange(64, dtype=np.uint8))
    rows = BufferTensorDesc(DataType.UINT8, [2, 3])
    columns = BufferTensorDesc(DataType.UINT8, [2, 3], [1, 3])
    desc = dml.ElementWiseBitNotOperatorDesc(rows, columns)
    execute(device, desc, [BufferBinding(buffer, 0, 8)], BufferBinding(buffer, 16, 12))
    want = np.arange(64)
    want[[16, 19, 22, 17, 20, 23]] = 255 - np.arange(6)
    assert buffer.read().tolist() == want.tolist()


def test_owned_inputs_are_copied_when_the_operator_is_initialized() -> None:
    driver = ModelDriver()
    device = dml.Device(driver)
    a, b, out = (device.create_buffer(20) for _ in range(3))
    a.write(np.array([1, 2, 3, 4], dtype=np.uint8))
    b.write(np.array([255, 255, 0, 0], dtype=np.uint8), offset=16)
    tensor = BufferTensorDesc(DataType.UINT8, [4])
    owned = BufferTensorDesc(DataType.UINT8, [4], flags=TensorFlags.OWNED_BY_DML)
    desc = dml.ElementWiseBitXorOperatorDesc(tensor, owned, tensor)
    operator = device.compile_operator(device.create_operator(desc))
    initializer = device.create_operator_initializer([operator])
    assert initializer.binding_properties.required_descriptor_count == 1
    table = device.create_binding_table(initializer)
    table.bind_inputs([[None, BufferBinding(b, 16)]])
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    recorder.record_dispatch(commands, initializer, table)
    device.execute(commands)
    b.write(np.zeros(20, dtype=np.uint8))  # the buffer belongs to the program again
    b.close()
    commands.reset()
    table.reset(operator)
    table.bind_inputs([BufferBinding(a), None])
    table.bind_outputs([BufferBinding(out)])
    recorder.record_dispatch(commands, operator, table)
    device.execute(commands)
    assert out.read(4).tolist() == [254, 253, 3, 4]
    device.close()
    assert driver.allocator.pieces == 0


@pytest.mark.parametrize("volatile", [False, True])
def test_bindings_are_read_when_recorded_or_if_volatile_when_executed(volatile: bool) -> None:
    device = dml.Device(ModelDriver())
    a, b, out = (device.create_buffer(4) for _ in range(3))
    a.write(np.full(4, 1, np.uint8))
    b.write(np.full(4, 2, np.uint8))
    tensor = BufferTensorDesc(DataType.UINT8, [4])
    flags = ExecutionFlags.DESCRIPTORS_VOLATILE if volatile else ExecutionFlags.NONE
    desc = dml.ElementWiseBitNotOperatorDesc(tensor, tensor)
    operator = device.compile_operator(device.create_operator(desc), flags)
    initializer = device.create_operator_initializer([operator])
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    recorder.record_dispatch(commands, initializer, device.create_binding_table(initializer))
    table = device.create_binding_table(operator)
    table.bind_inputs([BufferBinding(a)])
    table.bind_outputs([BufferBinding(out)])
    recorder.record_dispatch(commands, operator, table)
    table.bind_inputs([BufferBinding(b)])
    device.execute(commands)
    assert out.read().tolist() == [253 if volatile else 254] * 4


def test_a_list_may_be_executed_again_and_several_at_once() -> None:
    driver = ModelDriver()
    device = dml.Device(driver)
    buffer = device.create_buffer(4)
    buffer.write(np.zeros(4, dtype=np.uint8))
    tensor = BufferTensorDesc(DataType.UINT8, [4])
    desc = dml.ElementWiseBitNotOperatorDesc(tensor, tensor)
    operator = device.compile_operator(device.create_operator(desc))
    initializer = device.create_operator_initializer([operator])
    recorder = device.create_command_recorder()
    first, second = device.create_command_list(), device.create_command_list()
    recorder.record_dispatch(first, initializer, device.create_binding_table(initializer))
    table = device.create_binding_table(operator)
    table.bind_inputs([BufferBinding(buffer)])
    table.bind_outputs([BufferBinding(buffer)])
    recorder.record_dispatch(second, operator, table)
    assert (len(first), len(second)) == (1, 1)
    device.execute(first, second)
    assert buffer.read().tolist() == [255] * 4
    device.execute(second)
    assert buffer.read().tolist() == [0] * 4


def test_an_initializer_can_be_reset_to_other_operators() -> None:
    device = dml.Device(ModelDriver())
    tensor = BufferTensorDesc(DataType.UINT8, [4])
    desc = dml.ElementWiseBitNotOperatorDesc(tensor, tensor)
    first, second = (device.compile_operator(device.create_operator(desc)) for _ in range(2))
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
    with pytest.raises(ValueError, match="6 bytes are no whole number of uint32"):
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

    assert supported(FeatureLevel.LEVEL_3_0) == {"UINT32", "UINT16", "UINT8"}
    assert supported(FeatureLevel.LEVEL_4_1) == {x.name for x in DataType} - {"UNKNOWN"}


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
    tensor = BufferTensorDesc(DataType.UINT8, [4])
    operator = one.create_operator(dml.ElementWiseBitNotOperatorDesc(tensor, tensor))
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
