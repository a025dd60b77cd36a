"""Bad model files are refused with the place in them, before memory, time or a device is used."""

import io
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bitlane.dml import FeatureLevel
from bitlane.model_file import ModelFileError, load_model
from support.host.model_files import (
    DELETE,
    MODEL,
    SQUARE,
    TENSORS,
    buffer,
    changed,
    found_at,
    from_file,
    load,
    png_chunk,
    refuse,
    tensor,
)

LONG = "x" * 300


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


def refused_values(*rows: tuple[Any, ...]) -> Callable[..., None]:
    """Return a test of rows: a place, a value to put there, and what is expected instead.

    The error is at the place, or at a part of the value that a fourth item names.
    """

    @pytest.mark.parametrize("row", rows, ids=lambda row: f"{row[0]}: {row[2]}")
    def test(row: tuple[Any, ...]) -> None:
        place, value, expected, *part = row
        for name in [name for name in contents() if re.search(rf"'{name}['/]", repr(value))]:
            Path(name).write_bytes(contents()[name])
        suffix = part[0] if part else ""
        model = changed({place: value})
        refuse(model, place + suffix, found_at(value, suffix), expected)

    return test


OP, COMMAND = "dispatchables.x", "commands[0]"
B, BOUND = f"{OP}.desc.BTensor", f"{COMMAND}.bindings.BTensor"
MANY = {"name": "A", "elementOffset": 8, "elementCount": 9}
INTEGER = "an integer from 0"
XNOR = "DML_OPERATOR_ELEMENT_WISE_BIT_XNOR"

test_dispatchables_and_commands = refused_values(
    ("resources", DELETE, "this field"),
    ("dispatchables", DELETE, "this field"),
    ("commands", DELETE, "this field"),
    ("resources", [], "an object"),
    ("dispatchables", 1, "an object"),
    ("commands", {}, "an array"),
    ("Commands", [], "resources, dispatchables, commands"),
    (f"{OP}.type", "hlsl", "bitlane does not run an HLSL shader"),
    (f"{OP}.type", "onnx", "bitlane does not run an ONNX model"),
    (f"{OP}.type", "dmlSerializedGraph", "bitlane does not run a serialized graph"),
    (f"{OP}.type", "DML_GRAPH_DESC", "bitlane does not run a graph"),
    (f"{OP}.type", "DML_OPERATOR_ELEMENT_WISE_ADD", "one of DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_L"),
    (f"{OP}.type", XNOR, "DML_OPERATOR_ELEMENT_WISE_BIT_COUNT"),
    (f"{OP}.type", "bit_xor", "DML_OPERATOR_ELEMENT_WISE_BIT_XOR"),
    (B, full(DataType="UINT7"), "one of UNKNOWN", ".DataType"),
    (B, full(DataType=5), "a string", ".DataType"),
    (B, full(DataType="UNKNOWN"), "the type of the tensor's elements", ".DataType"),
    (B, full(Sizes=6), "an array", ".Sizes"),
    (B, full(Sizes=[2, 3.0]), INTEGER, ".Sizes[1]"),
    (B, full(Sizes=[2, -1]), INTEGER, ".Sizes[1]"),
    (B, full(Sizes=[2, 0]), "1 to 4294967295 (E_INVALIDARG)", ".Sizes[1]"),
    (B, full(Sizes=[2, 4]), "[2, 3], as in ATensor", ".Sizes"),
    (B, full(Strides=[1]), "2 numbers, as in Sizes", ".Strides"),
    (B, full(Strides=[3, -1]), INTEGER, ".Strides[1]"),
    (B, full(DimensionCount=3), "2, the length of Sizes", ".DimensionCount"),
    (B, full(TotalTensorSizeInBytes=4), "at least 8", ".TotalTensorSizeInBytes"),
    (B, full(TotalTensorSizeInBytes=2**64), INTEGER, ".TotalTensorSizeInBytes"),
    (B, full(GuaranteedBaseOffsetAlignment=3), "a power of two", ".GuaranteedBaseOffsetAlignment"),
    (B, full(Flags="OWNED"), "one of NONE, OWNED_BY_DML", ".Flags"),
    (B, full(Flags=["NONE", "X"]), "one of NONE, OWNED_BY_DML", ".Flags[1]"),
    (B, full(Type="TEXTURE"), "one of BUFFER", ".Type"),
    (B, full(Stride=[3, 1]), "no such field: a tensor has Type, DataType, ", ".Stride"),
    (B, {"Sizes": [2, 3], "Desc": full()}, "a wrapped tensor has Type, Desc", ".Sizes"),
    (B, {"Type": "BUFFER", "Desc": full(Sizes=[2, 0])}, "1 to ", ".Desc.Sizes[1]"),
    (B, DELETE, "this field"),
    (f"{OP}.desc.CTensor", {}, "ATensor, BTensor, OutputTensor"),
    (f"{OP}.desc", [], "an object"),
    (f"{OP}.type", DELETE, "this field"),
    (f"{OP}.dmlCompileType", "Jit", "DmlCompileOp, DmlCompileGraph"),
    (f"{OP}.executionFlags", "FAST", "DESCRIPTORS_VOLATILE"),
    (f"{OP}.sourcePath", "a", "an operator has type"),
    (OP, "xor", "an object"),
    (BOUND, "C", "a resource: A, B, Out"),
    (BOUND, 5, "an object"),
    (BOUND, [], "one resource, not 0"),
    (BOUND, ["A", "B"], "one resource, not 2"),
    (BOUND, {"name": "C"}, "a resource: A, B, Out", ".name"),
    (BOUND, {}, "this field", ".name"),
    (BOUND, MANY | {"elementOffset": -1}, INTEGER, ".elementOffset"),
    (BOUND, {"name": "A", "elementCount": 17}, "inside the 64 bytes of A", ".elementCount"),
    (BOUND, MANY, "17 elements of 4 bytes are 68", ".elementCount"),
    (BOUND, MANY | {"format": "R32"}, "a binding has name", ".format"),
    (f"{COMMAND}.bindings.OutputTensor", DELETE, "ATensor, BTensor, OutputTensor"),
    (f"{COMMAND}.bindings.CTensor", "A", "nothing: only tensors of"),
    (f"{COMMAND}.type", "copy", "one of dispatch, print, writeFile"),
    (f"{COMMAND}.type", DELETE, "this field"),
    (f"{COMMAND}.dispatchable", "y", "a dispatchable: x"),
    (f"{COMMAND}.bindings", DELETE, "this field"),
    (f"{COMMAND}.bindings", [], "an object"),
    (f"{COMMAND}.iterations", 2, "a dispatch has type, dispatchable, bindings"),
    ("commands[1].resource", "C", "a resource: A, B, Out"),
    ("commands[1].verbose", 1, "true or false"),
    ("commands[1].format", "hex", "a print has type, resource, verbose"),
    ("commands[2].resource", "C", "a resource: A, B, Out"),
    ("commands[2].targetPath", DELETE, "this field"),
    ("commands[2].targetPath", "a.txt", "one of .npy, .bin, .dat, "),
    ("commands[2].targetPath", "file/a.npy", "is none"),
    ("commands[2].targetPath", "a\0b.bin", "without the character NUL"),
    ("commands[2].targetPath", f"{LONG}.bin", "a file that can be created"),
    ("commands[2].targetPath", f"{LONG}/a.bin", "a file that can be created"),
    ("commands[2].targetPath", "a/" * 3000 + "a.bin", "a file that can be created"),
    ("commands[2].dimensions", [4, 3], "16 elements, which Out has"),
    ("commands[2].dimensions", [0, 3], "an integer from 1", "[0]"),
    ("commands[2].dimensions", [16, *[1] * 64], "at most 64 dim"),
    ("commands[2].dims", [16], "a writeFile has type, resource"),
)  # fmt: skip


# --- resources --------------------------------------------------------------------------------


@cache
def contents() -> dict[str, bytes]:
    """Return the files that rows name, arrays, images and others, sound and damaged."""

    def saved(write: Callable[[Any], object]) -> bytes:
        file = io.BytesIO()
        write(file)
        return file.getvalue()

    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 10
    grey = np.full((1, 1), 300, np.uint16)
    nothing = np.array([{}], dtype=object)
    return {
        "a.png": saved(lambda file: Image.fromarray(pixels).save(file, "PNG")),
        "grey.png": saved(lambda file: Image.fromarray(grey).save(file, "PNG")),
        "u2.npy": saved(lambda file: np.save(file, np.zeros(2, np.uint16))),
        "bool.npy": saved(lambda file: np.save(file, np.zeros(2, np.bool_))),
        "object.npy": saved(lambda file: np.save(file, nothing, allow_pickle=True)),
        "cut.npy": saved(lambda file: np.save(file, np.zeros(100, np.uint8)))[:-1],
        "a.bin": b"12",
        "file": b"",
        "empty.bin": b"",
        "empty.npy": b"",
        "archive.npy": saved(lambda file: np.savez(file, x=np.zeros(1))),
        "archive_head.npy": b"PK\x03\x04",
        "two_bytes.npy": b"PK",
        "pickle.npy": b"\x80\x04.",
        "head.npy": b"\x93NUMPY",
        "none.png": b"no image",
        "colour.png": deep_colour(),
        "inflating.png": png(1, 1, INFLATING),
        "large.png": png(8200, 8200),
        "eps.png": EPS,
        "gif.png": b"GIF89a" + bytes(99),
    }


def png_of(*parts: tuple[bytes, bytes]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in (*parts, (b"IEND", b"")))


def deep_colour() -> bytes:
    """Return a PNG of one pixel with 16 bits per channel, which Pillow cannot write."""
    head = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    return png_of((b"IHDR", head), (b"IDAT", zlib.compress(struct.pack(">BHHH", 0, 1, 2, 3))))


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Return a PNG of grey pixels without their data, with ``chunks`` before its end."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return png_of((b"IHDR", head), *chunks, (b"IDAT", zlib.compress(bytes(9))))


INFLATING = b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 21))
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(x) (w) file\n%%EOF\n"

A, TYPE, VALUES = "resources.A", ".initialValuesDataType", ".initialValues"
SOURCE, RESAMPLED, SIZE = f"{VALUES}.sourcePath", ".resampleSize", ".sizeInBytes"
PIXELS = "at most 67108864 pixels"
BOTH = {"sourcePath": "a.bin", "value": 1}
THREE = {"value": 1, "valueStart": 2, "valueCount": 3}
UNKNOWN = {"type": "UNKNOWN", "value": 1}


test_resources = refused_values(
    *(
        (A, buffer(kind, [0, x]), f"an integer from {low} to {high}", f"{VALUES}[1]")
        for kind, low, high in [
            ("INT8", -128, 127),
            ("INT16", -(2**15), 2**15 - 1),
            ("INT64", -(2**63), 2**63 - 1),
            ("UINT8", 0, 255),
            ("UINT32", 0, 2**32 - 1),
            ("UINT64", 0, 2**64 - 1),
        ]
        for x in (low - 1, high + 1, 1.0, True, "1", None, [1])
    ),
    *(
        (A, buffer(kind, [x]), f"{kind} can hold", f"{VALUES}[0]")
        for kind, x in (
            ("FLOAT16", 65520), ("FLOAT32", 1e39), ("FLOAT64", 10**400), ("FLOAT32", -1e39)
        )
    ),
    *(
        (A, buffer("FLOAT32", [x]), 'a number, "nan", "inf" or "-inf"', f"{VALUES}[0]")
        for x in ("infinity", "1.0", True, None, {})
    ),
    *(
        (A, buffer("UINT8", {"valueCount": n, **more}), "1 to ", f"{VALUES}.valueCount")
        for n in (0, -1, 2**32, 1.5)
        for more in ({"value": 0}, {"valueStart": 0, "valueDelta": 0})
    ),
    *(
        (A, given, expected, TYPE)
        for values in ({"valueCount": 1, "value": 0}, {"valueCount": 1, "valueStart": 0})
        for given, expected in (
            (buffer("UNKNOWN", values), "a data type"), ({"initialValues": values}, "field")
        )
    ),
    (A, buffer("UNKNOWN", [1]), "an object", f"{VALUES}[0]"),
    (A, buffer("UNKNOWN", [UNKNOWN]), "data type", f"{VALUES}[0].type"),
    (A, buffer("UINT16", [1, 2], sizeInBytes=3), "at least 4", SIZE),
    (A, buffer("UINT8", [1], sizeInBytes="4"), "an integer", SIZE),
    (A, [], "an object"),
    (A, {}, "this field", VALUES),
    (A, buffer("UINT7", [1]), "one of UNKNOWN, FLOAT", TYPE),
    (A, buffer("UINT8", []), "at least one element", VALUES),
    (A, buffer("UINT8", 5), "an array, or an object", VALUES),
    (A, buffer("UINT8", {}), "valueCount and value", VALUES),
    (A, buffer("UINT8", "deferred"), "ONNX", VALUES),
    (A, buffer("UINT8", [1], value=2), "a buffer has type", ".value"),
    (A, buffer("UINT8", [1], type="texture"), "one of buffer", ".type"),
    (
        A,
        buffer("UINT8", [1], initialValuesOffsetInBytes=4),
        "0: the values stand first",
        ".initialValuesOffsetInBytes",
    ),
    (A, buffer("UINT8", [1], resampleMode="scale"), "image", ".resampleMode"),
    (A, buffer("UINT8", THREE), "no such field", f"{VALUES}.valueStart"),
    (A, buffer("UINT8", {"value": 1}), "field", f"{VALUES}.valueCount"),
    (A, buffer("UINT8", BOTH), "one of an array", VALUES),
    (A, from_file("u2.npy", "UINT8"), "UINT16, the type", TYPE),
    (A, from_file("bool.npy"), "one of DirectML's data types", SOURCE),
    *(
        (A, from_file(name), "a NumPy array file", SOURCE)
        for name in contents()
        if name.endswith(".npy") and name not in ("u2.npy", "bool.npy")
    ),
    (A, from_file("a.bin"), "this field", TYPE),
    (A, from_file("empty.bin", "UINT8"), "at least one element", VALUES),
    (A, from_file("a\0b.bin"), "a file in ", SOURCE),
    (A, from_file(f"{LONG}.bin"), "a file in ", SOURCE),
    *(
        (A, from_file("a.png", "UINT8", resampleSize=size), "", f"{RESAMPLED}{at}")
        for size, at in (
            ([2, 3, 4, 5], ""), ([1, 2, 4, 5], ""), ([3, 4, 5], ""), ([1, 3, 0, 5], "[2]")
        )
    ),
    *(
        (A, from_file(f"{kind}.png", data_type, **size), "an image with 8 bits a channel", SOURCE)
        for kind in ("grey", "colour")
        for data_type in ("UINT8", "FLOAT32")
        for size in ({}, {"resampleSize": [1, 1, 1, 1]})
    ),
    (A, from_file("inflating.png", "UINT8"), "can read (Decompressed data too large", SOURCE),
    (A, from_file("large.png", "UINT8"), f"an image of {PIXELS}", SOURCE),
    (A, from_file("eps.png", "UINT8"), "an image that Pillow can read, PNG or JPEG", SOURCE),
    (A, from_file("gif.png", "UINT8"), "an image that Pillow can read, PNG or JPEG", SOURCE),
    *(
        (A, from_file("a.png", "UINT8", resampleSize=[1, 4, n, n]), PIXELS, RESAMPLED)
        for n in (8193, 60_000, 2**32 - 1)
    ),
    (A, from_file("none.png", "UINT8"), "an image that Pillow can read", SOURCE),
    (A, from_file("a.png", "INT16"), "FLOAT32, FLOAT16, UINT8", TYPE),
    (A, from_file("a.png"), "this field", TYPE),
    (A, from_file("a.png", "UINT8", resampleMode="crop"), "one of scale", ".resampleMode"),
    (A, from_file("a.bin", "UINT8", resampleSize=[1, 1, 1, 2]), "image as the source", RESAMPLED),
)  # fmt: skip


# --- several places, and the device -----------------------------------------------------------

UNTYPED = {"initialValues": [{"type": "UINT64", "value": 1}] * 8}
BYTES = buffer("UINT8", [1] * 16)
PRINT = {"type": "print", "resource": "A"}
WRITE = {"type": "writeFile", "resource": "A"}
OWNED = {
    B: SQUARE | {"Flags": "OWNED_BY_DML"},
    f"{OP}.bindings": {"BTensor": "B"},
    f"{COMMAND}.bindings": {"ATensor": "A", "OutputTensor": "Out"},
}
ONE_TYPE = "a resource of one data type"
LONG_ROW = buffer("UINT8", {"valueCount": 65501, "value": 1})
CHANNELS = "[1, channels, height, width]"
IN_BYTES = f"{COMMAND}.bindings.ATensor"
OF_XOR = "DML_OPERATOR_ELEMENT_WISE_BIT_XOR"


@pytest.mark.parametrize(
    ("changes", "place", "found", "expected"),
    [
        (OWNED | {BOUND: "B"}, BOUND, "B", f"nothing: only tensors of {OF_XOR}"),
        (OWNED | {f"{OP}.bindings": None}, f"{OP}.bindings", "missing", "bindings of BTensor, "),
        (
            OWNED | {f"{OP}.bindings": {"BTensor": "B", "ATensor": "A"}},
            f"{OP}.bindings.ATensor", "A", "nothing: only inputs that are OWNED_BY_DML are bound",
        ),
        (
            {A: UNTYPED, IN_BYTES: {"name": "A", "elementOffset": 2}},
            f"{IN_BYTES}.elementStride", "missing", "A holds values of several types",
        ),
        *(
            ({A: UNTYPED, "commands": [command]}, f"{COMMAND}.resource", "A", ONE_TYPE)
            for command in (PRINT, WRITE | {"targetPath": "a.npy"})
        ),
        *(
            (
                {A: resource, "commands": [WRITE | {"targetPath": name, "dimensions": shape}]},
                f"{COMMAND}.targetPath", name, expected,
            )
            for name, shape, resource, expected in [
                ("a.jpg", [1, 4, 2, 2], BYTES, CHANNELS),
                ("a.png", [1, 2, 2, 4], BYTES, CHANNELS),
                ("a.png", [16], BYTES, CHANNELS),
                ("a.png", None, BYTES, CHANNELS),
                ("a.png", [1, 1, 4, 4], MODEL["resources"]["A"], "FLOAT32, FLOAT16, UINT8"),
                ("a.jpg", [1, 1, 1, 65501], LONG_ROW, "a height and width of at most 65500"),
            ]
        ),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_together(
    changes: Mapping[str, object], place: str, found: Any, expected: str
) -> None:
    refuse(changed(changes), place, found, expected)


def test_rules_are_those_of_the_level() -> None:
    model = changed({f"{OP}.desc": {name: tensor("FLOAT32", [2, 3]) for name in TENSORS}})
    load(model)
    place, level = f"{OP}.desc.ATensor.DataType", FeatureLevel.LEVEL_3_0
    refuse(model, place, "FLOAT32", "UINT32, UINT16, UINT8", level)
    place, level = f"{OP}.type ({OF_XOR}.FeatureLevel)", FeatureLevel.LEVEL_2_1
    refuse(model, place, level, "3_0 or above", level)


def test_the_file_is_an_object_in_utf_8() -> None:
    refuse([1], "the file", [1], "an object")
    path = Path("m.json")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        load_model(path)
    path.write_bytes(b'\xef\xbb\xbf{\n"resources": {}, "dispatchables": {}, "commands": []}')
    assert load_model(path).resources == {}
    path.write_bytes(b'{\n"\xff": 1}')
    with pytest.raises(ModelFileError, match=r"line 2 is .*0xff.*; expected text in UTF-8"):
        load_model(path)


def test_an_image_like_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2)
    Path("a.png").write_bytes(contents()["a.png"])
    model = changed({A: from_file("a.png", "UINT8")})
    refuse(model, f"{A}{SOURCE}", "a.png", "decompression bomb")
