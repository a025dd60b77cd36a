"""The file and its dispatchables: every form that is read, and every refusal with its place."""

from copy import deepcopy
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
from support.host.model_files import DELETE, MODEL, changed, load, refuse

# --- The whole file -----------------------------------------------------------------------------


def test_reads_resources_dispatchables_and_commands(tmp_path: Path) -> None:
    model = load(changed(**{"$schema": "./_schema.json"}), tmp_path)
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


@pytest.mark.parametrize("field", ["resources", "dispatchables", "commands"])
def test_all_three_parts_are_there(field: str, tmp_path: Path) -> None:
    refuse(changed(**{field: DELETE}), tmp_path, field, "missing", "this field")


@pytest.mark.parametrize(
    ("changes", "path", "found", "expected"),
    [
        ({"resources": []}, "resources", [], "an object"),
        ({"dispatchables": 1}, "dispatchables", 1, "an object"),
        ({"commands": {}}, "commands", {}, "an array"),
        ({"Commands": []}, "Commands", [], "resources, dispatchables, commands"),
    ],
)
def test_parts_have_their_types(
    changes: dict[str, object], path: str, found: object, expected: str, tmp_path: Path
) -> None:
    refuse(changed(**changes), tmp_path, path, found, expected)


def test_the_file_is_an_object(tmp_path: Path) -> None:
    refuse([1], tmp_path, "the file", [1], "an object")


def test_the_file_exists(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.json")


def test_the_file_is_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(b'\xef\xbb\xbf{\n"resources": {}, "dispatchables": {}, "commands": []}')
    assert load_model(path).resources == {}
    path.write_bytes(b'{\n"\xff": 1}')
    with pytest.raises(ModelFileError, match=r"line 2 is .*0xff.*; expected text in UTF-8"):
        load_model(path)


# --- Dispatchables ------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["type", "Type"])
@pytest.mark.parametrize("prefix", ["", "DML_OPERATOR_"])
@pytest.mark.parametrize("desc", ["desc", "Desc", None])
def test_operators_in_every_form(desc: str | None, prefix: str, field: str, tmp_path: Path) -> None:
    fields = deepcopy(MODEL["dispatchables"]["x"]["desc"])
    value: dict[str, object] = {field: f"{prefix}ELEMENT_WISE_BIT_XOR"}
    value |= fields if desc is None else {desc: fields}
    model = load(changed(dispatchables__x=value), tmp_path)
    assert isinstance(model.dispatchables["x"].desc, ElementWiseBitXorOperatorDesc)


@pytest.mark.parametrize(
    "suffix",
    ["BIT_NOT", "BIT_COUNT", "BIT_AND", "BIT_OR", "BIT_XOR", "BIT_SHIFT_LEFT", "BIT_SHIFT_RIGHT"],
)
def test_all_seven_operators(suffix: str, tmp_path: Path) -> None:
    unary = suffix in ("BIT_NOT", "BIT_COUNT")
    names = ["InputTensor", "OutputTensor"] if unary else ["ATensor", "BTensor", "OutputTensor"]
    value = {
        "type": f"DML_OPERATOR_ELEMENT_WISE_{suffix}",
        "desc": {name: {"DataType": "UINT8", "Sizes": [4]} for name in names},
    }
    model = load(changed(dispatchables__x=value, commands=[]), tmp_path)
    desc = model.dispatchables["x"].desc
    assert desc.operator_type.name == f"ELEMENT_WISE_{suffix}"
    assert [name for name, _ in (*desc.inputs, *desc.outputs)] == names


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
def test_other_dispatchables_are_refused_by_name(kind: str, expected: str, tmp_path: Path) -> None:
    refuse(changed(dispatchables__x__type=kind), tmp_path, "dispatchables.x.type", kind, expected)


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


@pytest.mark.parametrize("wrapped", [False, True])
def test_tensors_with_all_their_fields(wrapped: bool, tmp_path: Path) -> None:
    value = {"Type": "DML_TENSOR_TYPE_BUFFER", "Desc": full()} if wrapped else full(Type="BUFFER")
    model = load(changed(dispatchables__x__desc__ATensor=value), tmp_path)
    desc = model.dispatchables["x"].desc
    want = BufferTensorDesc(DataType.UINT8, [2, 3], [4, 1], TensorFlags.NONE, 16, 32)
    assert dict(desc.inputs)["ATensor"] == want


@pytest.mark.parametrize(
    "fields",
    [
        {"Strides": None, "TotalTensorSizeInBytes": None, "Flags": None},
        {"Strides": [], "TotalTensorSizeInBytes": 0, "GuaranteedBaseOffsetAlignment": 0},
        {"Flags": ["NONE"], "DimensionCount": 2, "Type": None},
    ],
)
def test_tensor_defaults(fields: dict[str, object], tmp_path: Path) -> None:
    value = {"DataType": "UINT8", "Sizes": [2, 3], **fields}
    model = load(changed(dispatchables__x__desc__ATensor=value), tmp_path)
    want = BufferTensorDesc(DataType.UINT8, [2, 3])
    assert dict(model.dispatchables["x"].desc.inputs)["ATensor"] == want


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
def test_tensors_are_refused_at_their_field(
    field: str, value: object, suffix: str, expected: str, tmp_path: Path
) -> None:
    model = changed(dispatchables__x__desc__BTensor=full(**{field: value}))
    path = f"dispatchables.x.desc.BTensor.{field}{suffix}"
    found = value[int(suffix[1])] if suffix and isinstance(value, list) else value
    refuse(model, tmp_path, path, found, expected)


def test_tensors_are_plain_or_wrapped_and_not_both(tmp_path: Path) -> None:
    model = changed(dispatchables__x__desc__BTensor={"Sizes": [2, 3], "Desc": full()})
    path = "dispatchables.x.desc.BTensor.Sizes"
    refuse(model, tmp_path, path, [2, 3], "a wrapped tensor has Type, Desc")


def test_wrapped_tensors_are_refused_at_their_inner_field(tmp_path: Path) -> None:
    value = {"Type": "BUFFER", "Desc": full(Sizes=[2, 0])}
    path = "dispatchables.x.desc.ATensor.Desc.Sizes[1]"
    refuse(changed(dispatchables__x__desc__ATensor=value), tmp_path, path, 0, "1 to ")


@pytest.mark.parametrize(
    ("changes", "path", "found", "expected"),
    [
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
def test_operators_are_refused_at_their_field(
    changes: dict[str, object], path: str, found: object, expected: str, tmp_path: Path
) -> None:
    model = changed(**{f"dispatchables__{key}": value for key, value in changes.items()})
    refuse(model, tmp_path, f"dispatchables.{path}", found, expected)


def test_execution_flags_and_compile_types(tmp_path: Path) -> None:
    flags = ["DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE", "DISABLE_META_COMMANDS"]
    model = load(
        changed(
            dispatchables__x__executionFlags=flags,
            dispatchables__x__dmlCompileType="DmlCompileGraph",
        ),
        tmp_path,
    )
    want = ExecutionFlags.DESCRIPTORS_VOLATILE | ExecutionFlags.DISABLE_META_COMMANDS
    assert model.dispatchables["x"].flags == want


def test_rules_are_those_of_the_level(tmp_path: Path) -> None:
    tensor = {"DataType": "FLOAT32", "Sizes": [2, 3]}
    names = ("ATensor", "BTensor", "OutputTensor")
    model = changed(dispatchables__x__desc=dict.fromkeys(names, tensor))
    load(model, tmp_path)
    path = "dispatchables.x.desc.ATensor.DataType"
    refuse(model, tmp_path, path, "FLOAT32", "UINT32, UINT16, UINT8", FeatureLevel.LEVEL_3_0)
    path = "dispatchables.x.type (DML_OPERATOR_ELEMENT_WISE_BIT_XOR.FeatureLevel)"
    level = FeatureLevel.LEVEL_2_1
    refuse(model, tmp_path, path, level, "3_0 or above", level)
