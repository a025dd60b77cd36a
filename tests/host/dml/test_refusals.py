"""Things of the wrong Python type: an error of bitlane's in one line, and nothing is executed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bitlane
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


@pytest.fixture
def bench() -> Bench:
    return Bench(NOT(U8, U8))


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


def flagged(flags: int) -> BufferTensorDesc:
    return BufferTensorDesc(DataType.UINT8, [16], None, TensorFlags(flags))


@pytest.mark.parametrize(
    ("desc", "message"),
    [
        *(
            (desc, rf"Flags is {flags}; expected NONE or OWNED_BY_DML")
            for flags in (2, 3, 1 << 40)
            for tensor in [flagged(flags)]
            for desc in (NOT(tensor, U8), XOR(U8, tensor, U8), NOT(U8, tensor))
        ),
        (NOT(NOTHING, U8), r"InputTensor\.Desc is None; expected a BufferTensorDesc"),
        (NOT(U8, NOTHING), r"OutputTensor\.Desc is None; expected a BufferTensorDesc"),
        (XOR(U8, NOTHING, U8), r"BTensor\.Desc is None; expected a BufferTensorDesc"),
        (COUNT(NOTHING, NOTHING), r"InputTensor\.Desc is None; expected a BufferTensorDesc"),
    ],
)
def test_descriptions_of_operators(desc: Any, message: str, bench: Bench) -> None:
    refuse(lambda: bench.device.create_operator(desc), message)


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        (BufferBinding(3), r"Buffer is 3; expected a buffer of Device.create_buffer"),  # type: ignore[arg-type]
        (BufferBinding(NOTHING), r"Buffer is None; expected a buffer"),
        (3, r"BindingType is 3; expected a BufferBinding or None"),
        ("x", r"BindingType is 'x'; expected"),
    ],
)
def test_bindings(binding: Any, message: str, bench: Bench) -> None:
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
def test_ranges(offset: Any, size: Any, message: str, bench: Bench) -> None:
    refuse(lambda: bench.table.bind_inputs([bench.at(offset, size)]), message)
    bench.table.bind_inputs([bench.at(np.int64(16), np.int64(16))])  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 3, "x", []])
def test_objects_of_the_api(wrong: Any, bench: Bench) -> None:
    device, record = bench.device, bench.recorder.record_dispatch
    calls: dict[str, Callable[[], object]] = {
        "CompileOperator.Operator": lambda: device.compile_operator(wrong),
        "CreateOperatorInitializer.Operator": lambda: device.create_operator_initializer([wrong]),
        "CreateBindingTable.Dispatchable": lambda: device.create_binding_table(wrong),
        "Execute.CommandList": lambda: device.execute(wrong),
        "RecordDispatch.CommandList": lambda: record(wrong, bench.operator, bench.table),
        "RecordDispatch.BindingTable": lambda: record(bench.commands, bench.operator, wrong),
        "OperatorDesc.Type": lambda: device.create_operator(wrong),
    }
    for name, call in calls.items():
        refuse(call, rf"{name} is .*; expected ")
    assert len(bench.commands) == 0


def test_labels_are_text(bench: Bench) -> None:
    refuse(lambda: bench.device.create_command_list(NOTHING), r"CreateCommandList\.Label is None")
    assert bench.device.create_command_list("layer 1").label == "layer 1"


def initializers_table(bench: Bench) -> Any:
    return bench.device.create_binding_table(bench.device.create_operator_initializer([]))


def ask(bench: Bench, feature: Any, about: Any) -> object:
    return bench.device.check_feature_support(feature, about)


def closed() -> bitlane.Device:
    device = model()
    device.close()
    return device


NO_DEVICE = r"Device\.Device is .*; expected what bitlane\.open returns"
CLOSED = r"Device\.Device is closed; expected a device that is open"
NO_TYPE = r"Buffer\.DataType is .*; expected a NumPy type"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.table.bind_inputs(None), r"BindInputs\.Bindings is None; expected a list"),
        (lambda b: b.table.bind_outputs(3), r"BindOutputs\.Bindings is 3"),
        (lambda b: initializers_table(b).bind_inputs(7), r"BindInputs\.Bindings is 7"),
        (lambda b: b.buffer.write(None), r"Buffer\.Data is None; expected an array of numbers"),
        (lambda b: b.buffer.write([None]), r"Buffer\.Data is of type list"),
        (lambda b: b.buffer.read(dtype="zz"), r"Buffer\.DataType is 'zz'; expected a NumPy type"),
        *((lambda b, x=x: b.buffer.read(dtype=x), NO_TYPE) for x in ("V", "S0", "no such type")),
        (lambda b: b.buffer.write([1], 1.5), r"Buffer\.Offset is 1.5"),
        (lambda b: b.buffer.write([1], "4"), r"Buffer\.Offset is '4'"),
        (lambda b: b.buffer.read(offset=1.5), r"Buffer\.Offset is 1.5"),
        (lambda b: b.buffer.read(offset="4"), r"Buffer\.Offset is '4'"),
        (lambda b: b.buffer.read(1.5), r"Buffer\.SizeInBytes is 1.5"),
        (lambda b: b.buffer.read("4"), r"Buffer\.SizeInBytes is '4'"),
        (lambda b: b.device.create_buffer("9"), r"Buffer\.SizeInBytes is '9'"),
        *((lambda b, x=x: dml.Device(x), NO_DEVICE) for x in ("sim", None, 3, np.zeros(4))),
        (lambda b: dml.Device(closed()), CLOSED),
        (lambda b: dml.Device(b.driver, 5), r"FeatureLevel is 5; expected one of LEVEL_1_0"),
        *(
            (lambda b, x=x: b.compile(NOT(U8, U8), x), r"CompileOperator\.Flags is ")
            for x in (8, -1, "x", None, 1.0)
        ),
        (lambda b: ask(b, 7, 5), r"Feature is 7; expected one of TENSOR_DATA"),
        (lambda b: ask(b, "x", 5), r"Feature is 'x'; expected one of"),
        (lambda b: ask(b, 0, 99), r"DataType is 99; expected one of UNKNOWN, FLOAT32"),
        (lambda b: ask(b, 1, 0x1000), r"RequestedFeatureLevels is 4096"),
        (lambda b: ask(b, 1, [5]), r"RequestedFeatureLevels is 5; expected"),
    ],
)
def test_calls(call: Callable[[Any], object], message: str, bench: Bench) -> None:
    refuse(lambda: call(bench), message)
    assert bench.model.calls == []


def test_numbers_of_features_are_directmls() -> None:
    device: Any = dml.Device(ModelDriver())
    assert device.check_feature_support(0, 5) is True


def test_scattered_contents_are_packed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane.dml.buffer.PIECE", 40)
    values = np.arange(60, dtype=np.uint32).reshape(6, 10).T[::-1]
    buffer = bench.device.create_buffer(256)
    buffer.write(values, 16)
    assert np.array_equal(buffer.read(240, 16, np.uint32), values.reshape(-1))
    assert bench.model.calls == ["write"] * 6 + ["read"]


def test_objects_tell_what_they_are(bench: Bench) -> None:
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
