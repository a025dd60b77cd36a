"""The file and its dispatchables: every form that is read, and every refusal with its place."""

from pathlib import Path

import pytest

from bitlane.dml import (
    BufferTensorDesc,
    DataType,
    ElementWiseBitXorOperatorDesc,
    ExecutionFlags,
    FeatureLevel,
    TensorFlags,
)
from bitlane.model_file import ModelFileError, load_model
from bitlane.model_file.model import Binding, Dispatch, Print, WriteFile
from support.host.model_files import DELETE, MODEL, SQUARE, TENSORS, changed, load, refuse


def test_reads_resources_dispatchables_and_commands() -> None:
    model = load(changed(**{"$schema": "./_schema.json"}))
    tensor = BufferTensorDesc(DataType.UINT8, [2, 3])
    assert list(model.resources) == ["A", "B", "Out"]
    assert model.dispatchables["x"].desc == ElementWiseBitXorOperatorDesc(tensor, tensor, tensor)
    dispatch, printed, written = model.commands
    assert isinstance(dispatch, Dispatch)
    assert dispatch.dispatchable == "x"
    assert dispatch.bindings["BTensor"] == Binding("B", 0, "commands[0].bindings.BTensor")
    assert printed == Print("Out", verbose=False)
    assert isinstance(written, WriteFile)
    assert (written.target, written.dimensions) == (Path("out.npy"), (16,))


@pytest.mark.parametrize(
    ("model", "path", "found", "expected"),
    [
        (changed(resources=DELETE), "resources", "missing", "this field"),
        (changed(dispatchables=DELETE), "dispatchables", "missing", "this field"),
        (changed(commands=DELETE), "commands", "missing", "this field"),
        (changed(resources=[]), "resources", [], "an object"),
        (changed(dispatchables=1), "dispatchables", 1, "an object"),
        (changed(commands={}), "commands", {}, "an array"),
        (changed(Commands=[]), "Commands", [], "resources, dispatchables, commands"),
        ([1], "the file", [1], "an object"),
    ],
)
def test_the_file_has_three_parts(model: object, path: str, found: object, expected: str) -> None:
    refuse(model, path, found, expected)


def test_the_file_exists_and_is_utf_8() -> None:
    path = Path("m.json")
    with pytest.raises(FileNotFoundError):
        load_model(path)
    path.write_bytes(b'\xef\xbb\xbf{\n"resources": {}, "dispatchables": {}, "commands": []}')
    assert load_model(path).resources == {}
    path.write_bytes(b'{\n"\xff": 1}')
    with pytest.raises(ModelFileError, match=r"line 2 is .*0xff.*; expected text in UTF-8"):
        load_model(path)


# --- Dispatchables ------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["type", "Type"])
@pytest.mark.parametrize("prefix", ["", "DML_OPERATOR_"])
@pytest.mark.parametrize("desc", ["desc", "Desc", None])
def test_operators_in_every_form(desc: str | None, prefix: str, field: str) -> None:
    fields = MODEL["dispatchables"]["x"]["desc"]
    value: dict[str, object] = {field: f"{prefix}ELEMENT_WISE_BIT_XOR"}
    value |= fields if desc is None else {desc: fields}
    model = load(changed(dispatchables__x=value))
    assert isinstance(model.dispatchables["x"].desc, ElementWiseBitXorOperatorDesc)


@pytest.mark.parametrize(
    "suffix",
    ["BIT_NOT", "BIT_COUNT", "BIT_AND", "BIT_OR", "BIT_XOR", "BIT_SHIFT_LEFT", "BIT_SHIFT_RIGHT"],
)
def test_all_seven_operators(suffix: str) -> None:
    unary = suffix in ("BIT_NOT", "BIT_COUNT")
    names = ("InputTensor", "OutputTensor") if unary else TENSORS
    name = f"ELEMENT_WISE_{suffix}"
    value = {"type": f"DML_OPERATOR_{name}", "desc": dict.fromkeys(names, SQUARE)}
    desc = load(changed(dispatchables__x=value, commands=[])).dispatchables["x"].desc
    assert desc.operator_type.name == name
    assert tuple(name for name, _ in (*desc.inputs, *desc.outputs)) == names


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("hlsl", "bitlane does not run an HLSL shader"),
        ("onnx", "bitlane does not run an ONNX model"),
        ("dmlSerializedGraph", "bitlane does not run a serialized graph"),
        ("DML_GRAPH_DESC", "bitlane does not run a graph"),
        ("DML_OPERATOR_ELEMENT_WISE_ADD", "one of DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_LEFT, "),
        ("DML_OPERATOR_ELEMENT_WISE_BIT_XNOR", "DML_OPERATOR_ELEMENT_WISE_BIT_COUNT"),
        ("bit_xor", "DML_OPERATOR_ELEMENT_WISE_BIT_XOR"),
    ],
)
def test_other_dispatchables_are_refused_by_name(kind: str, expected: str) -> None:
    refuse(changed(dispatchables__x__type=kind), "dispatchables.x.type", kind, expected)


def full(**fields: object) -> dict[str, object]:
    return {
        "DataType": "DML_TENSOR_DATA_TYPE_UINT8",
        "Flags": "DML_TENSOR_FLAG_NONE",
        "DimensionCount": 2,
        "Sizes": [2, 3],
        "Strides": [4, 1],
        "TotalTensorSizeInBytes": 16,
        "GuaranteedBaseOffsetAlignment": 32,
    } | fields


FULL = BufferTensorDesc(DataType.UINT8, [2, 3], [4, 1], TensorFlags.NONE, 16, 32)
PLAIN = BufferTensorDesc(DataType.UINT8, [2, 3])


@pytest.mark.parametrize(
    ("value", "tensor"),
    [
        (full(Type="BUFFER"), FULL),
        ({"Type": "DML_TENSOR_TYPE_BUFFER", "Desc": full()}, FULL),
        (SQUARE | {"Strides": None, "TotalTensorSizeInBytes": None, "Flags": None}, PLAIN),
        (
            SQUARE
            | {"Strides": [], "TotalTensorSizeInBytes": 0, "GuaranteedBaseOffsetAlignment": 0},
            PLAIN,
        ),
        (SQUARE | {"Flags": ["NONE"], "DimensionCount": 2, "Type": None}, PLAIN),
    ],
)
def test_tensors_with_all_fields_and_defaults(value: object, tensor: BufferTensorDesc) -> None:
    model = load(changed(dispatchables__x__desc__ATensor=value))
    assert dict(model.dispatchables["x"].desc.inputs)["ATensor"] == tensor


@pytest.mark.parametrize(
    ("field", "value", "suffix", "expected"),
    [
        ("DataType", "UINT7", "", "one of UNKNOWN"),
        ("DataType", 5, "", "a string"),
        ("DataType", "UNKNOWN", "", "the type of the tensor's elements"),
        ("Sizes", 6, "", "an array"),
        ("Sizes", [2, 3.0], "[1]", "an integer from 0"),
        ("Sizes", [2, -1], "[1]", "an integer from 0"),
        ("Sizes", [2, 0], "[1]", "1 to 4294967295 (E_INVALIDARG)"),
        ("Sizes", [2, 4], "", "[2, 3], as in ATensor"),
        ("Strides", [1], "", "2 numbers, as in Sizes"),
        ("Strides", [3, -1], "[1]", "an integer from 0"),
        ("DimensionCount", 3, "", "2, the length of Sizes"),
        ("TotalTensorSizeInBytes", 4, "", "at least 8"),
        ("TotalTensorSizeInBytes", 2**64, "", "an integer from 0"),
        ("GuaranteedBaseOffsetAlignment", 3, "", "a power of two"),
        ("Flags", "OWNED", "", "one of NONE, OWNED_BY_DML"),
        ("Flags", ["NONE", "X"], "[1]", "one of NONE, OWNED_BY_DML"),
        ("Type", "TEXTURE", "", "one of BUFFER"),
        ("Stride", [3, 1], "", "no such field: a tensor has Type, DataType, "),
    ],
)
def test_bad_tensors(field: str, value: object, suffix: str, expected: str) -> None:
    model = changed(dispatchables__x__desc__BTensor=full(**{field: value}))
    path = f"dispatchables.x.desc.BTensor.{field}{suffix}"
    found = value[int(suffix[1])] if suffix and isinstance(value, list) else value
    refuse(model, path, found, expected)


@pytest.mark.parametrize(
    ("changes", "path", "found", "expected"),
    [
        (
            {"x__desc__BTensor": {"Sizes": [2, 3], "Desc": full()}},
            "x.desc.BTensor.Sizes",
            [2, 3],
            "a wrapped tensor has Type, Desc",
        ),
        (
            {"x__desc__ATensor": {"Type": "BUFFER", "Desc": full(Sizes=[2, 0])}},
            "x.desc.ATensor.Desc.Sizes[1]",
            0,
            "1 to ",
        ),
        ({"x__desc__BTensor": DELETE}, "x.desc.BTensor", "missing", "this field"),
        ({"x__desc__CTensor": {}}, "x.desc.CTensor", {}, "ATensor, BTensor, OutputTensor"),
        ({"x__desc": []}, "x.desc", [], "an object"),
        ({"x__type": DELETE}, "x.type", "missing", "this field"),
        ({"x__dmlCompileType": "Jit"}, "x.dmlCompileType", "Jit", "DmlCompileOp, DmlCompileGraph"),
        ({"x__executionFlags": "FAST"}, "x.executionFlags", "FAST", "DESCRIPTORS_VOLATILE"),
        ({"x__sourcePath": "a"}, "x.sourcePath", "a", "an operator has type"),
        ({"x": "xor"}, "x", "xor", "an object"),
    ],
)
def test_bad_operators(changes: dict[str, object], path: str, found: object, expected: str) -> None:
    model = changed(**{f"dispatchables__{key}": value for key, value in changes.items()})
    refuse(model, f"dispatchables.{path}", found, expected)


def test_execution_flags_and_compile_types() -> None:
    flags = ["DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE", "DISABLE_META_COMMANDS"]
    changes = {"executionFlags": flags, "dmlCompileType": "DmlCompileGraph"}
    model = load(changed(**{f"dispatchables__x__{key}": x for key, x in changes.items()}))
    want = ExecutionFlags.DESCRIPTORS_VOLATILE | ExecutionFlags.DISABLE_META_COMMANDS
    assert model.dispatchables["x"].flags == want


def test_rules_are_those_of_the_level() -> None:
    tensor = {"DataType": "FLOAT32", "Sizes": [2, 3]}
    model = changed(dispatchables__x__desc=dict.fromkeys(TENSORS, tensor))
    load(model)
    path = "dispatchables.x.desc.ATensor.DataType"
    refuse(model, path, "FLOAT32", "UINT32, UINT16, UINT8", FeatureLevel.LEVEL_3_0)
    path = "dispatchables.x.type (DML_OPERATOR_ELEMENT_WISE_BIT_XOR.FeatureLevel)"
    level = FeatureLevel.LEVEL_2_1
    refuse(model, path, level, "3_0 or above", level)
