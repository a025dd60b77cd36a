"""The file, its dispatchables and commands: every form that is read, and its text."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bitlane.dml import (
    BufferTensorDesc,
    DataType,
    ElementWiseBitXorOperatorDesc,
    ExecutionFlags,
    TensorFlags,
)
from bitlane.model_file import Binding, Dispatch, ModelFileError, Print, WriteFile, parse_json
from support.host.model_files import MODEL, SQUARE, TENSORS, buffer, changed, load
from support.seeds import seeds

OP, COMMAND = "dispatchables.x", "commands[0]"


def test_reads_resources_dispatchables_and_commands() -> None:
    model = load(changed({"$schema": "./_schema.json"}))
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


@pytest.mark.parametrize("field", ["type", "Type"])
@pytest.mark.parametrize("prefix", ["", "DML_OPERATOR_"])
@pytest.mark.parametrize("desc", ["desc", "Desc", None])
def test_operators_in_every_form(desc: str | None, prefix: str, field: str) -> None:
    fields = MODEL["dispatchables"]["x"]["desc"]
    value: dict[str, object] = {field: f"{prefix}ELEMENT_WISE_BIT_XOR"}
    value |= fields if desc is None else {desc: fields}
    model = load(changed({OP: value}))
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
    desc = load(changed({OP: value, "commands": []})).dispatchables["x"].desc
    assert desc.operator_type.name == name
    assert tuple(name for name, _ in (*desc.inputs, *desc.outputs)) == names


FULL = BufferTensorDesc(DataType.UINT8, [2, 3], [4, 1], TensorFlags.NONE, 16, 32)
PLAIN = BufferTensorDesc(DataType.UINT8, [2, 3])
WRITTEN = {
    "DataType": "DML_TENSOR_DATA_TYPE_UINT8",
    "Flags": "DML_TENSOR_FLAG_NONE",
    "DimensionCount": 2,
    "Sizes": [2, 3],
    "Strides": [4, 1],
    "TotalTensorSizeInBytes": 16,
    "GuaranteedBaseOffsetAlignment": 32,
}


@pytest.mark.parametrize(
    ("value", "tensor"),
    [
        (WRITTEN | {"Type": "BUFFER"}, FULL),
        ({"Type": "DML_TENSOR_TYPE_BUFFER", "Desc": WRITTEN}, FULL),
        (SQUARE | {"Strides": None, "TotalTensorSizeInBytes": None, "Flags": None}, PLAIN),
        (SQUARE | {"Strides": [], "TotalTensorSizeInBytes": 0}, PLAIN),
        (SQUARE | {"GuaranteedBaseOffsetAlignment": 0}, PLAIN),
        (SQUARE | {"Flags": ["NONE"], "DimensionCount": 2, "Type": None}, PLAIN),
    ],
)
def test_tensors_with_all_fields_and_defaults(value: object, tensor: BufferTensorDesc) -> None:
    model = load(changed({f"{OP}.desc.ATensor": value}))
    assert dict(model.dispatchables["x"].desc.inputs)["ATensor"] == tensor


def test_execution_flags_and_compile_types() -> None:
    flags = ["DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE", "DISABLE_META_COMMANDS"]
    changes = {f"{OP}.executionFlags": flags, f"{OP}.dmlCompileType": "DmlCompileGraph"}
    want = ExecutionFlags.DESCRIPTORS_VOLATILE | ExecutionFlags.DISABLE_META_COMMANDS
    assert load(changed(changes)).dispatchables["x"].flags == want


# --- bindings and commands --------------------------------------------------------------------


def dispatched(model: object) -> Dispatch:
    """Return the first command of ``model``, as it is loaded."""
    command = load(model).commands[0]
    assert isinstance(command, Dispatch)
    return command


def test_owned_tensors_are_bound_at_the_dispatchable() -> None:
    owned: dict[str, object] = {
        f"{OP}.desc.BTensor": SQUARE | {"Flags": "OWNED_BY_DML"},
        f"{OP}.bindings": {"BTensor": "B"},
        f"{COMMAND}.bindings": {"ATensor": "A", "OutputTensor": "Out"},
    }
    want = {"BTensor": Binding("B", 0, "dispatchables.x.bindings.BTensor")}
    assert load(changed(owned)).dispatchables["x"].bindings == want


@pytest.mark.parametrize(
    ("value", "offset"),
    [
        ("A", 0),
        (["A"], 0),
        ({"name": "A"}, 0),
        ([{"name": "A", "elementOffset": 4}], 16),  # elements as the resource was initialised
        ({"name": "A", "elementOffset": 4, "elementStride": 8}, 32),
        ({"name": "A", "elementOffset": 4, "elementSizeInBytes": 8}, 32),
        ({"name": "A", "elementOffset": 8, "elementCount": 8, "elementStride": 4}, 32),
    ],
)
def test_bindings_in_every_form(value: object, offset: int) -> None:
    binding = dispatched(changed({f"{COMMAND}.bindings.ATensor": value})).bindings["ATensor"]
    assert (binding.resource, binding.offset) == ("A", offset)


def test_offsets_into_untyped_resources_have_a_stride() -> None:
    binding = {"name": "A", "elementOffset": 2, "elementStride": 8}
    untyped = {"initialValues": [{"type": "UINT64", "value": 1}] * 8}
    model = changed({"resources.A": untyped, f"{COMMAND}.bindings.ATensor": binding})
    assert dispatched(model).bindings["ATensor"].offset == 16


IMAGE = buffer("UINT8", {"valueCount": 16, "value": 1})
LONG = buffer("UINT8", {"valueCount": 65501, "value": 1})
UNTYPED = {"initialValues": [{"type": "UINT64", "value": 1}]}
WRITE = {"type": "writeFile", "resource": "A"}


@pytest.mark.parametrize(
    "changes",
    [
        {f"{COMMAND}.type": "Dispatch"},
        {f"{COMMAND}.threadGroupCount": [1, 1, 1]},
        {"commands[2].targetPath": "new/folder/a.npy"},
        {"resources.A": UNTYPED, "commands": [WRITE | {"targetPath": "a.bin"}]},
        *(
            {
                "resources.A": resource,
                "commands": [WRITE | {"targetPath": "a.png", "dimensions": shape}],
            }
            for resource, shape in [
                (IMAGE, [1, 1, 4, 4]),
                (IMAGE, [1, 4, 2, 2]),
                (LONG, [1, 1, 1, 65501]),
            ]
        ),
    ],
)
def test_commands_that_are_read(changes: dict[str, Any]) -> None:
    load(changed(changes))


# --- text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2, 3]", [1, 2, 3]),
        ("[1, 2, 3,]", [1, 2, 3]),
        ('{"a": [1,], "b": {},}', {"a": [1], "b": {}}),
        ("[1, /* 2, */ 3]", [1, 3]),
        ("// first\n[1, // second ]\n 2]// last", [1, 2]),
        ("[1, // behind the last comma\n]", [1]),
        ("[1 /* , */ , /* , */ ]", [1]),
        ("/* a * b ** / // */ [1]", [1]),
        ('["// no comment", "/* nor this */", "a,]"]', ["// no comment", "/* nor this */", "a,]"]),
        (r'["\" // \\", "\u00e9"]', ['" // \\', "\u00e9"]),
        ("[true, false, null, -1.5e+3, 1E2, -0.0]", [True, False, None, -1500.0, 100.0, -0.0]),
        ("[18446744073709551615]", [2**64 - 1]),
        ("[[], {}, [[1,],],]", [[], {}, [[1]]]),
    ],
)
def test_reads(text: str, value: object) -> None:
    assert parse_json(text, "m.json") == value


@pytest.mark.parametrize(
    ("text", "line", "column", "found", "expected"),
    [
        ('{"a": 1\n  "b": 2}', 2, 3, '"b": 2}', '","'),
        ('{"a" 1}', 1, 6, "1}", '":"'),
        ("[1, 2", 1, 6, "the end of the file", '","'),
        ("", 1, 1, "the end of the file", "a value"),
        ("[,]", 1, 2, ",]", "a value"),
        ("[1,,]", 1, 4, ",]", "a value"),
        ("{,}", 1, 2, ",}", "a name in double quotes"),
        ("[1]\n\n  [2]", 3, 3, "[2]", "the end of the file"),
        ("[1,\n 2 /* three ]", 2, 4, "/* three ]", "a comment that ends with */"),
        ('["abc\n"]', 1, 2, '"abc', "a string that ends on its line"),
        ("[\n  NaN]", 2, 3, "NaN]", 'true, false, null, a number or a "string"'),
        ("[-Infinity]", 1, 3, "Infinity]", "true, false, null"),
        ("{a: 1}", 1, 2, "a: 1}", "true, false, null"),
        ("['a']", 1, 3, "a']", "true, false, null"),
        ("[0x10]", 1, 3, "x10]", '","'),
        ("[1, /* c */ // d\n, 2]", 2, 1, ", 2]", "a value"),
        ("# bitlane\n\ntext", 1, 1, "# bitlane", 'JSON, which begins with "{"'),
        ("// none\nhello", 2, 1, "hello", 'JSON, which begins with "{"'),
        (r'["a", "\ud800"]', 1, 7, r'"\ud800"]', "whole characters"),
        (r'{"\udc00\ud800": 1}', 1, 2, r'"\udc00\ud800": 1}', "whole characters"),
        (r'["\q"]', 1, 3, r'\q"]', "JSON (Invalid \\escape"),
    ],
)
def test_refuses_by_place(text: str, line: int, column: int, found: str, expected: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        parse_json(text, "m.json")
    error = caught.value
    assert error.path == f"line {line}, column {column}"
    assert error.value == found
    assert expected in error.expected
    assert str(error).startswith(f"m.json: line {line}, column {column} is ")
    assert ("the end" in found) is (f"is {found};" in str(error))  # text is quoted, facts are not


def test_refuses_names_given_twice() -> None:
    with pytest.raises(ModelFileError, match='the name "a" is there twice'):
        parse_json('{"a": 1, "b": {"a": 2}, "a": 3}', "m.json")


def test_refuses_nesting_without_end() -> None:
    with pytest.raises(ModelFileError, match="nested too deep"):
        parse_json("[" * 200_000, "m.json")


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_comments_and_commas_change_nothing(seed: int) -> None:
    generator = random.Random(seed)

    def value(depth: int) -> object:
        kind = generator.randrange(6 if depth else 4)
        if kind == 4:
            return [value(depth - 1) for _ in range(generator.randrange(4))]
        if kind == 5:
            return {f'n"{i}//,': value(depth - 1) for i in range(generator.randrange(4))}
        return [generator.randrange(-9, 9), 'a "b" /* ,] }', None, 1.25][kind]

    def decorate(text: str) -> str:
        pieces: list[str] = []
        in_string = False
        for index, character in enumerate(text):
            quoted = index > 0 and text[index - 1] == "\\" and in_string
            if character == '"' and not quoted:
                in_string = not in_string
            elif not in_string and character in "]}" and text[index - 1] not in "[{":
                pieces.append(generator.choice([",", " , // ]\n", ""]))
            pieces.append(character)
            if not in_string and character in "[]{},:":
                pieces.append(generator.choice(["/* ,] */", "// }\n", " ", ""]))
        return "".join(pieces)

    for _ in range(30):
        want = value(4)
        text = decorate(json.dumps(want))
        assert parse_json(text, "m.json") == want, f"seed {seed}: {text}"
