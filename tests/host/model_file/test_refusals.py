"""Bindings and commands: every form that is read, and every refusal with its place."""

from pathlib import Path
from typing import Any

import pytest

from bitlane.model_file.model import Binding, Dispatch
from support.host.model_files import DELETE, MODEL, SQUARE, changed, load, refuse


def dispatched(model: object) -> Dispatch:
    """Return the first command of ``model``, as it is loaded."""
    command = load(model).commands[0]
    assert isinstance(command, Dispatch)
    return command


# --- Bindings -----------------------------------------------------------------------------------


def owned() -> dict[str, Any]:
    """Return the model with B bound when the operator is initialised."""
    return changed(
        dispatchables__x__desc__BTensor=SQUARE | {"Flags": "OWNED_BY_DML"},
        dispatchables__x__bindings={"BTensor": "B"},
        commands__0__bindings={"ATensor": "A", "OutputTensor": "Out"},
    )


def test_owned_tensors_are_bound_at_the_dispatchable_and_nowhere_else() -> None:
    want = {"BTensor": Binding("B", 0, "dispatchables.x.bindings.BTensor")}
    assert load(owned()).dispatchables["x"].bindings == want
    model = owned()
    model["commands"][0]["bindings"]["BTensor"] = "B"
    path = "commands[0].bindings.BTensor"
    refuse(model, path, "B", "nothing: only tensors of DML_OPERATOR_ELEMENT_WISE_BIT_XOR")
    model = owned()
    del model["dispatchables"]["x"]["bindings"]
    path = "dispatchables.x.bindings"
    refuse(model, path, "missing", "bindings of BTensor, which are OWNED_BY_DML")
    model = owned()
    model["dispatchables"]["x"]["bindings"]["ATensor"] = "A"
    path = "dispatchables.x.bindings.ATensor"
    refuse(model, path, "A", "nothing: only inputs that are OWNED_BY_DML are bound")


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
    binding = dispatched(changed(commands__0__bindings__ATensor=value)).bindings["ATensor"]
    assert (binding.resource, binding.offset) == ("A", offset)


MANY = {"name": "A", "elementCount": 17}
LONG = {"name": "A", "elementOffset": 8, "elementCount": 9}


@pytest.mark.parametrize(
    ("tensor", "value", "suffix", "found", "expected"),
    [
        ("BTensor", "C", "", "C", "a resource: A, B, Out"),
        ("BTensor", 5, "", 5, "an object"),
        ("BTensor", [], "", [], "one resource, not 0"),
        ("BTensor", ["A", "B"], "", ["A", "B"], "one resource, not 2"),
        ("BTensor", {"name": "C"}, ".name", "C", "a resource: A, B, Out"),
        ("BTensor", {}, ".name", "missing", "this field"),
        ("BTensor", LONG | {"elementOffset": -1}, ".elementOffset", -1, "an integer from 0"),
        (
            "BTensor",
            {"name": "A", "elementCount": 17},
            ".elementCount",
            17,
            "inside the 64 bytes of A",
        ),
        ("BTensor", LONG, ".elementCount", 9, "17 elements of 4 bytes are 68"),
        ("BTensor", LONG | {"format": "R32"}, ".format", "R32", "a binding has name"),
        ("OutputTensor", DELETE, "", "missing", "ATensor, BTensor, OutputTensor"),
        ("CTensor", "A", "", "A", "nothing: only tensors of"),
    ],
)
def test_bad_bindings(
    tensor: str, value: object, suffix: str, found: object, expected: str
) -> None:
    model = changed(**{f"commands__0__bindings__{tensor}": value})
    refuse(model, f"commands[0].bindings.{tensor}{suffix}", found, expected)


def test_offsets_into_untyped_resources_need_a_stride() -> None:
    model = changed(
        resources__A={"initialValues": [{"type": "UINT64", "value": 1}] * 8},
        commands__0__bindings__ATensor={"name": "A", "elementOffset": 2},
    )
    path = "commands[0].bindings.ATensor.elementStride"
    refuse(model, path, "missing", "A holds values of several types")
    model["commands"][0]["bindings"]["ATensor"]["elementStride"] = 8
    assert dispatched(model).bindings["ATensor"].offset == 16


# --- Commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "fields", "path", "found", "expected"),
    [
        (0, {"type": "copy"}, "type", "copy", "one of dispatch, print, writeFile"),
        (0, {"type": DELETE}, "type", "missing", "this field"),
        (0, {"dispatchable": "y"}, "dispatchable", "y", "a dispatchable: x"),
        (0, {"bindings": DELETE}, "bindings", "missing", "this field"),
        (0, {"bindings": []}, "bindings", [], "an object"),
        (0, {"iterations": 2}, "iterations", 2, "a dispatch has type, dispatchable, bindings"),
        (1, {"resource": "C"}, "resource", "C", "a resource: A, B, Out"),
        (1, {"verbose": 1}, "verbose", 1, "true or false"),
        (1, {"format": "hex"}, "format", "hex", "a print has type, resource, verbose"),
        (2, {"resource": "C"}, "resource", "C", "a resource: A, B, Out"),
        (2, {"targetPath": DELETE}, "targetPath", "missing", "this field"),
        (2, {"targetPath": "a.txt"}, "targetPath", "a.txt", "one of .npy, .bin, .dat, "),
        (2, {"dimensions": [4, 3]}, "dimensions", [4, 3], "16 elements, which Out has"),
        (2, {"dimensions": [0, 3]}, "dimensions[0]", 0, "an integer from 1"),
        (2, {"dimensions": [16, *[1] * 64]}, "dimensions", [16, *[1] * 64], "at most 64 dim"),
        (2, {"dims": [16]}, "dims", [16], "a writeFile has type, resource"),
    ],
)
def test_bad_commands(
    index: int, fields: dict[str, object], path: str, found: object, expected: str
) -> None:
    model = changed(**{f"commands__{index}__{key}": value for key, value in fields.items()})
    refuse(model, f"commands[{index}].{path}", found, expected)


def test_command_types_in_any_case_and_thread_groups_ignored() -> None:
    changes = {"commands__0__type": "Dispatch", "commands__0__threadGroupCount": [1, 1, 1]}
    dispatched(changed(**changes))


def test_untyped_resources_are_not_printed_nor_made_arrays() -> None:
    untyped = {"initialValues": [{"type": "UINT64", "value": 1}]}
    command = {"type": "writeFile", "resource": "A", "targetPath": "a.npy"}
    for refused in ({"type": "print", "resource": "A"}, command):
        model = changed(resources__A=untyped, commands=[refused])
        refuse(model, "commands[0].resource", "A", "a resource of one data type")
    load(changed(resources__A=untyped, commands=[command | {"targetPath": "a.bin"}]))


@pytest.mark.parametrize(
    ("dimensions", "target", "fine"),
    [
        ([1, 1, 4, 4], "a.png", True),
        ([1, 4, 2, 2], "a.png", True),
        ([1, 4, 2, 2], "a.jpg", False),
        ([1, 2, 2, 4], "a.png", False),
        ([16], "a.png", False),
        (None, "a.png", False),
    ],
)
def test_images_need_four_dimensions(dimensions: list[int] | None, target: str, fine: bool) -> None:
    image = {"initialValuesDataType": "UINT8", "initialValues": [1] * 16}
    command = {"type": "writeFile", "resource": "A", "targetPath": target, "dimensions": dimensions}
    model = changed(resources__A=image, commands=[command])
    if fine:
        load(model)
    else:
        refuse(model, "commands[0].targetPath", target, "[1, channels, height, width]")
    model["resources"]["A"] = MODEL["resources"]["A"]
    refuse(model, "commands[0].targetPath", target, "FLOAT32, FLOAT16, UINT8")


def test_a_jpeg_is_not_longer_than_its_encoder_takes() -> None:
    image = {"initialValuesDataType": "UINT8", "initialValues": {"valueCount": 65501, "value": 1}}
    command = {"type": "writeFile", "resource": "A", "dimensions": [1, 1, 1, 65501]}
    model = changed(resources__A=image, commands=[command | {"targetPath": "a.jpg"}])
    refuse(model, "commands[0].targetPath", "a.jpg", "a height and width of at most 65500")
    load(changed(resources__A=image, commands=[command | {"targetPath": "a.png"}]))


def test_targets_are_files_that_can_be_created() -> None:
    Path("folder.npy").mkdir()
    Path("file").write_text("")
    for target, expected in (("folder.npy", "not a folder"), ("file/a.npy", "is none")):
        model = changed(commands__2__targetPath=target)
        refuse(model, "commands[2].targetPath", target, expected)
    load(changed(commands__2__targetPath="new/folder/a.npy"))
