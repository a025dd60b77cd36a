"""Things of the wrong Python type: an error of bitlane's in one line, and nothing is executed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from bitlane import dml
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType, TensorFlags
from support.host.arrays import model
from support.host.dml_bench import COUNT, NOT, U8, XOR, Bench
from support.host.model_driver import ModelDriver

NOTHING: Any = None


def refuse(action: Callable[[], object], message: str) -> None:
    with pytest.raises(dml.DmlError, match=message) as caught:
        action()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((DataType.UINT8, None), r"BufferTensorDesc\.Sizes is None; expected a list of integers"),
        ((DataType.UINT8, 3), r"\.Sizes is 3; expected a list"),
        ((DataType.UINT8, [2, "3"]), r"\.Sizes\[1\] is '3'; expected an integer"),
        ((DataType.UINT8, [2.0]), r"\.Sizes\[0\] is 2\.0; expected an integer"),
        ((DataType.UINT8, [np.zeros((9, 9))]), r"\.Sizes\[0\] is of type ndarray; expected an int"),
        ((DataType.UINT8, ["x" * 99]), r"\.Sizes\[0\] is of type str"),
        ((DataType.UINT8, [2], [None]), r"\.Strides\[0\] is None; expected an integer"),
        ((DataType.UINT8, [2], None, "OWNED"), r"\.Flags is 'OWNED'; expected an integer"),
        ((DataType.UINT8, [2], None, -1), r"\.Flags is -1; expected TensorFlags"),
        ((DataType.UINT8, [2], None, 0, 4.5), r"\.TotalTensorSizeInBytes is 4\.5"),
        ((DataType.UINT8, [2], None, 0, 4, []), r"\.GuaranteedBaseOffsetAlignment is of type list"),
        ((99, [2]), r"\.DataType is 99; expected a DataType"),
        ((None, [2]), r"\.DataType is None"),
        (("UINT8", [2]), r"\.DataType is 'UINT8'"),
    ],
)
def test_descriptions_of_tensors(arguments: tuple[Any, ...], message: str) -> None:
    refuse(lambda: BufferTensorDesc(*arguments), message)
    with pytest.raises(TypeError):
        BufferTensorDesc(*arguments)


@pytest.mark.parametrize("flags", [2, 3, 1 << 40])
def test_flags_that_do_not_exist(flags: int) -> None:
    tensor = BufferTensorDesc(DataType.UINT8, [16], None, TensorFlags(flags))
    bench = Bench(NOT(U8, U8))
    for desc in (NOT(tensor, U8), XOR(U8, tensor, U8), NOT(U8, tensor)):
        message = rf"Flags is {flags}; expected NONE or OWNED_BY_DML"
        refuse(lambda desc=desc: bench.device.create_operator(desc), message)


@pytest.mark.parametrize(
    ("desc", "name"),
    [
        (NOT(NOTHING, U8), "InputTensor"),
        (NOT(U8, NOTHING), "OutputTensor"),
        (XOR(U8, NOTHING, U8), "BTensor"),
        (COUNT(NOTHING, NOTHING), "InputTensor"),
    ],
)
def test_operators_without_a_tensor(desc: dml.OperatorDesc, name: str) -> None:
    bench = Bench(NOT(U8, U8))
    refuse(
        lambda: bench.device.create_operator(desc),
        rf"{name}\.Desc is None; expected a BufferTensorDesc",
    )


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        (BufferBinding(3), r"Buffer is 3; expected a buffer of Device.create_buffer"),  # type: ignore[arg-type]
        (BufferBinding(NOTHING), r"Buffer is None; expected a buffer"),
        (3, r"BindingType is 3; expected a BufferBinding or None"),
        ("x", r"BindingType is 'x'; expected"),
    ],
)
def test_bindings(binding: Any, message: str) -> None:
    bench = Bench(NOT(U8, U8))
    refuse(lambda: bench.table.bind_inputs([binding]), message)
    refuse(lambda: bench.table.bind_outputs([binding]), message)


@pytest.mark.parametrize(
    ("offset", "size", "message"),
    [
        ("0", None, r"Offset is '0'; expected an integer"),
        (0.0, None, r"Offset is 0\.0"),
        (0, "16", r"SizeInBytes is '16'; expected an integer or None"),
    ],
)
def test_ranges(offset: Any, size: Any, message: str) -> None:
    bench = Bench(NOT(U8, U8))
    refuse(lambda: bench.table.bind_inputs([bench.at(offset, size)]), message)
    bench.table.bind_inputs([bench.at(np.int64(16), np.int64(16))])  # type: ignore[arg-type]


def test_what_is_no_list_of_bindings() -> None:
    bench = Bench(NOT(U8, U8))
    refuse(lambda: bench.table.bind_inputs(NOTHING), r"BindInputs\.Bindings is None; expected a l")
    refuse(lambda: bench.table.bind_outputs(3), r"BindOutputs\.Bindings is 3")  # type: ignore[arg-type]
    initializer = bench.device.create_operator_initializer([])
    table = bench.device.create_binding_table(initializer)
    refuse(lambda: table.bind_inputs(7), r"BindInputs\.Bindings is 7")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 3, "x", []])
def test_objects_of_the_api(wrong: Any) -> None:
    bench = Bench(NOT(U8, U8))
    device, recorder = bench.device, bench.recorder
    calls: dict[str, Callable[[], object]] = {
        "CompileOperator.Operator": lambda: device.compile_operator(wrong),
        "CreateOperatorInitializer.Operator": lambda: device.create_operator_initializer([wrong]),
        "CreateBindingTable.Dispatchable": lambda: device.create_binding_table(wrong),
        "Execute.CommandList": lambda: device.execute(wrong),
        "RecordDispatch.CommandList": lambda: recorder.record_dispatch(
            wrong, bench.operator, bench.table
        ),
        "RecordDispatch.BindingTable": lambda: recorder.record_dispatch(
            bench.commands, bench.operator, wrong
        ),
        "OperatorDesc.Type": lambda: device.create_operator(wrong),
    }
    for name, call in calls.items():
        refuse(call, rf"{name} is .*; expected ")
    assert len(bench.commands) == 0


def test_contents_of_buffers() -> None:
    bench = Bench(NOT(U8, U8))
    buffer = bench.buffer
    refuse(lambda: buffer.write(NOTHING), r"Buffer\.Data is None; expected an array of numbers")
    refuse(lambda: buffer.write([None]), r"Buffer\.Data is of type list")
    refuse(lambda: buffer.read(dtype="zz"), r"Buffer\.DataType is 'zz'; expected a NumPy type")
    wrong: Any
    for wrong in (1.5, "4"):
        offset, size = rf"Buffer\.Offset is {wrong!r}", rf"Buffer\.SizeInBytes is {wrong!r}"
        refuse(partial(buffer.write, [1], wrong), offset)
        refuse(partial(buffer.read, offset=wrong), offset)
        refuse(partial(buffer.read, wrong), size)
    refuse(lambda: bench.device.create_buffer("9"), r"Buffer\.SizeInBytes is '9'")  # type: ignore[arg-type]
    assert bench.model.calls == []


def test_contents_that_are_no_single_block_are_packed_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bitlane.dml.buffer.PIECE", 40)
    bench = Bench(NOT(U8, U8))
    values = np.arange(60, dtype=np.uint32).reshape(6, 10).T[::-1]
    buffer = bench.device.create_buffer(256)
    buffer.write(values, 16)
    assert np.array_equal(buffer.read(240, 16, np.uint32), values.reshape(-1))
    assert bench.model.calls == ["write"] * 6 + ["read"]


@pytest.mark.parametrize("wrong", ["sim", None, 3, np.zeros(4)])
def test_what_is_no_device(wrong: Any) -> None:
    refuse(lambda: dml.Device(wrong), r"Device\.Device is .*; expected what bitlane\.open returns")


def test_a_device_that_is_closed() -> None:
    device = model()
    device.close()
    refuse(lambda: dml.Device(device), r"Device\.Device is closed; expected a device that is open")


def test_what_is_no_feature_level() -> None:
    refuse(lambda: dml.Device(ModelDriver(), 5), r"FeatureLevel is 5; expected one of LEVEL_1_0")


@pytest.mark.parametrize("flags", [8, -1, "x", None, 1.0])
def test_flags_of_compile_operator_that_do_not_exist(flags: Any) -> None:
    bench = Bench(NOT(U8, U8))
    operator = bench.device.create_operator(NOT(U8, U8))
    refuse(lambda: bench.device.compile_operator(operator, flags), r"CompileOperator\.Flags is ")


def test_what_check_feature_support_does_not_know() -> None:
    device: Any = dml.Device(ModelDriver())
    assert device.check_feature_support(0, 5) is True, "numbers are DirectML's"
    refuse(lambda: device.check_feature_support(7, 5), r"Feature is 7; expected one of TENSOR_DATA")
    refuse(lambda: device.check_feature_support("x", 5), r"Feature is 'x'; expected one of")
    refuse(
        lambda: device.check_feature_support(0, 99),
        r"DataType is 99; expected one of UNKNOWN, FLOAT32",
    )
    refuse(lambda: device.check_feature_support(1, 0x1000), r"RequestedFeatureLevels is 4096")
    refuse(lambda: device.check_feature_support(1, [5]), r"RequestedFeatureLevels is 5; expected")


@pytest.mark.parametrize("dtype", ["V", "S0", "no such type"])
def test_types_that_no_buffer_is_read_as(dtype: str) -> None:
    bench = Bench(NOT(U8, U8))
    refuse(lambda: bench.buffer.read(dtype=dtype), r"Buffer\.DataType is .*; expected a NumPy type")


def test_objects_tell_what_they_are() -> None:
    bench = Bench(NOT(U8, U8))
    bench.table.bind_inputs([bench.at(0)])
    bench.table.bind_outputs([bench.at(16)])
    bench.record()
    name = "DML_OPERATOR_ELEMENT_WISE_BIT_NOT"
    assert repr(bench.device) == "<bitlane.dml.Device: feature level 4_1>"
    assert repr(bench.operator) == f"<bitlane.dml.CompiledOperator: {name}, initialized>"
    assert repr(bench.device.create_operator(NOT(U8, U8))) == f"<bitlane.dml.Operator: {name}>"
    assert repr(bench.commands) == "<bitlane.dml.CommandList: dispatches: 1>"
    assert repr(bench.recorder) == f"<bitlane.dml.CommandRecorder of {bench.device}>"
    assert repr(bench.table) == f"<bitlane.dml.BindingTable of {bench.operator}>"
    initializer = bench.device.create_operator_initializer([])
    assert repr(initializer) == "<bitlane.dml.OperatorInitializer: operators: 0>"
    assert repr(bench.buffer) == f"<bitlane.dml.Buffer: 256 bytes, at {bench.buffer.address:#x}>"
    bench.buffer.close()
    assert repr(bench.buffer) == "<bitlane.dml.Buffer: 256 bytes, closed>"
