"""Resources: every kind of initial values, and what is refused of them."""

import struct
import zlib
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from PIL import Image

from bitlane.dml import DataType
from bitlane.model_file import ModelFileError
from bitlane.model_file.model import Resource
from bitlane.model_file.node import Node
from bitlane.model_file.resources import read_resource


def read(value: object, folder: Path = Path()) -> Resource:
    return read_resource("r", Node("m.json", "resources.r", value), folder)


def typed(data_type: str, values: object, **fields: object) -> dict[str, object]:
    return {"initialValuesDataType": data_type, "initialValues": values, **fields}


def elements(resource: Resource) -> list[object]:
    values: list[object] = resource.data.view(resource.data_type.dtype).tolist()
    return values


def refuse(value: object, path: str, found: object, expected: str, folder: Path = Path()) -> None:
    with pytest.raises(ModelFileError) as caught:
        read(value, folder)
    error = caught.value
    assert (error.file, error.path, error.value) == ("m.json", path, found)
    assert expected in error.expected
    assert f"m.json: {path} is " in str(error)


# --- Arrays, constants, sequences, lists --------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "DML_TENSOR_DATA_TYPE_"])
@pytest.mark.parametrize("data_type", list(DataType)[1:])
def test_arrays_of_every_type_by_short_or_full_name(data_type: DataType, prefix: str) -> None:
    resource = read(typed(prefix + data_type.name, [1, 2, 3]))
    assert resource.data_type is data_type
    assert elements(resource) == [1, 2, 3]
    assert resource.elements == 3
    assert resource.content == 3 * data_type.itemsize


@pytest.mark.parametrize(
    ("data_type", "low", "high"),
    [
        ("INT8", -128, 127),
        ("INT16", -(2**15), 2**15 - 1),
        ("INT64", -(2**63), 2**63 - 1),
        ("UINT8", 0, 255),
        ("UINT32", 0, 2**32 - 1),
        ("UINT64", 0, 2**64 - 1),
    ],
)
def test_integers_in_their_range_and_no_others(data_type: str, low: int, high: int) -> None:
    assert elements(read(typed(data_type, [low, high]))) == [low, high]
    place = "resources.r.initialValues[1]"
    for value in (low - 1, high + 1, 1.0, True, "1", None, [1]):
        refuse(typed(data_type, [0, value]), place, value, f"an integer from {low} to {high}")


@pytest.mark.parametrize("data_type", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_floats_take_names_in_any_case(data_type: str) -> None:
    got = elements(read(typed(data_type, [1.5, -2, "inf", "-Inf", "NaN"])))
    assert got[:4] == [1.5, -2, float("inf"), float("-inf")]
    assert got[4] != got[4]


@pytest.mark.parametrize(
    ("data_type", "value"),
    [("FLOAT16", 65520), ("FLOAT32", 1e39), ("FLOAT64", 10**400), ("FLOAT32", -1e39)],
)
def test_floats_that_overflow_are_refused(data_type: str, value: float) -> None:
    refuse(
        typed(data_type, [value]), "resources.r.initialValues[0]", value, f"{data_type} can hold"
    )


@pytest.mark.parametrize("value", ["infinity", "1.0", True, None, {}])
def test_floats_take_nothing_else(value: object) -> None:
    place = "resources.r.initialValues[0]"
    refuse(typed("FLOAT32", [value]), place, value, 'a number, "nan", "inf" or "-inf"')


def test_half_precision_is_rounded_by_way_of_single() -> None:
    # 1 + 2**-11 + 2**-40 lies just above the middle of two halves, but its single lies on it.
    value = 1 + 2**-11 + 2**-40
    assert np.float16(value) != 1
    assert elements(read(typed("FLOAT16", [value]))) == [1]


def test_constants() -> None:
    resource = read(typed("INT16", {"valueCount": 5, "value": -2}))
    assert elements(resource) == [-2] * 5
    assert (resource.content, resource.size) == (10, 12)


def test_sequences() -> None:
    sequence = {"valueCount": 4, "valueStart": 1, "valueDelta": 2.5}
    assert elements(read(typed("FLOAT32", sequence))) == [1, 3.5, 6, 8.5]
    down = {"valueCount": 3, "valueStart": 1, "valueDelta": -1}
    assert elements(read(typed("INT8", down))) == [1, 0, -1]


def test_integer_sequences_wrap() -> None:
    up = {"valueCount": 4, "valueStart": 254, "valueDelta": 1}
    assert elements(read(typed("UINT8", up))) == [254, 255, 0, 1]
    signed = {"valueCount": 3, "valueStart": 127, "valueDelta": 1}
    assert elements(read(typed("INT8", signed))) == [127, -128, -127]


def test_float_sequences_round_each_sum() -> None:
    values = elements(
        read(typed("FLOAT32", {"valueCount": 1000, "valueStart": 0, "valueDelta": 0.1}))
    )
    total = np.float32(0)
    for got in values:
        assert got == total
        total += np.float32(0.1)


@pytest.mark.parametrize("count", [0, -1, 2**32, 1.5])
def test_counts_are_positive(count: object) -> None:
    for values in (
        {"valueCount": count, "value": 0},
        {"valueCount": count, "valueStart": 0, "valueDelta": 0},
    ):
        refuse(typed("UINT8", values), "resources.r.initialValues.valueCount", count, "1 to ")


def test_lists_of_values_with_types_of_their_own() -> None:
    values = [
        {"name": "n", "type": "UINT32", "value": 6},
        {"type": "FLOAT16", "value": 1.0},
        {"type": "INT8", "value": -1},
    ]
    for fields in (typed("UNKNOWN", values), {"initialValues": values}):
        resource = read(fields)
        assert resource.data_type is DataType.UNKNOWN
        assert resource.data.tolist() == [6, 0, 0, 0, 0x00, 0x3C, 0xFF]
        assert (resource.content, resource.size) == (7, 8)


def test_values_without_a_type_are_refused() -> None:
    for values in ({"valueCount": 1, "value": 0}, {"valueCount": 1, "valueStart": 0}):
        refuse(
            typed("UNKNOWN", values), "resources.r.initialValuesDataType", "UNKNOWN", "a data type"
        )
        refuse({"initialValues": values}, "resources.r.initialValuesDataType", "missing", "field")
    refuse(typed("UNKNOWN", [1]), "resources.r.initialValues[0]", 1, "an object")
    item = {"type": "UNKNOWN", "value": 1}
    refuse(typed("UNKNOWN", [item]), "resources.r.initialValues[0].type", "UNKNOWN", "data type")


# --- Sizes and fields ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "content", "size"), [(None, 3, 4), (3, 3, 4), (5, 5, 8), (256, 256, 256)]
)
def test_sizes_are_inflated_to_words(given: int | None, content: int, size: int) -> None:
    resource = read(typed("UINT8", [1, 2, 3], sizeInBytes=given))
    assert (resource.content, resource.size) == (content, size)
    assert resource.data.tolist() == [1, 2, 3]


def test_sizes_hold_the_values() -> None:
    place = "resources.r.sizeInBytes"
    refuse(typed("UINT16", [1, 2], sizeInBytes=3), place, 3, "at least 4")
    refuse(typed("UINT8", [1], sizeInBytes="4"), place, "4", "an integer")


@pytest.mark.parametrize(
    ("value", "path", "found", "expected"),
    [
        ([], "resources.r", [], "an object"),
        ({}, "resources.r.initialValues", "missing", "this field"),
        (
            typed("UINT7", [1]),
            "resources.r.initialValuesDataType",
            "UINT7",
            "one of UNKNOWN, FLOAT",
        ),
        (typed("UINT8", []), "resources.r.initialValues", [], "at least one element"),
        (typed("UINT8", 5), "resources.r.initialValues", 5, "an array, or an object"),
        (typed("UINT8", {}), "resources.r.initialValues", {}, "valueCount and value"),
        (typed("UINT8", "deferred"), "resources.r.initialValues", "deferred", "ONNX"),
        (typed("UINT8", [1], value=2), "resources.r.value", 2, "a buffer has type"),
        (typed("UINT8", [1], type="texture"), "resources.r.type", "texture", "one of buffer"),
        (
            typed("UINT8", [1], initialValuesOffsetInBytes=4),
            "resources.r.initialValuesOffsetInBytes",
            4,
            "0: the values stand first",
        ),
        (typed("UINT8", [1], resampleMode="scale"), "resources.r.resampleMode", "scale", "image"),
        (
            typed("UINT8", {"value": 1, "valueStart": 2, "valueCount": 3}),
            "resources.r.initialValues.valueStart",
            2,
            "no such field",
        ),
        (typed("UINT8", {"value": 1}), "resources.r.initialValues.valueCount", "missing", "field"),
    ],
)
def test_refuses(value: object, path: str, found: object, expected: str) -> None:
    refuse(value, path, found, expected)


# --- Files --------------------------------------------------------------------------------------


def from_file(name: str, data_type: str | None = None, **fields: object) -> dict[str, object]:
    values = {"initialValues": {"sourcePath": name}, **fields}
    return values if data_type is None else {"initialValuesDataType": data_type, **values}


SOURCE = "resources.r.initialValues.sourcePath"


@pytest.mark.parametrize("data_type", list(DataType)[1:])
def test_numpy_files_bring_their_type(data_type: DataType, tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(data_type.dtype)
    np.save(tmp_path / "a.npy", array)
    for fields in (from_file("a.npy"), from_file("a.npy", data_type.name)):
        resource = read(fields, tmp_path)
        assert resource.data_type is data_type
        assert elements(resource) == [0, 1, 2, 3, 4, 5]


def test_numpy_files_in_any_order(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6, dtype=">u2").reshape(2, 3))
    np.save(tmp_path / "a.npy", array)
    assert elements(read(from_file("a.npy"), tmp_path)) == [0, 1, 2, 3, 4, 5]


def test_numpy_files_of_another_type_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(2, np.uint16))
    place = "resources.r.initialValuesDataType"
    refuse(from_file("a.npy", "UINT8"), place, "UINT8", "UINT16, the type", tmp_path)
    np.save(tmp_path / "b.npy", np.zeros(2, np.bool_))
    refuse(from_file("b.npy"), SOURCE, "b.npy", "one of DirectML's data types", tmp_path)


def test_numpy_files_are_not_executed(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    refuse(from_file("a.npy"), SOURCE, "a.npy", "a NumPy array file", tmp_path)


def test_broken_numpy_files_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", np.zeros(100, np.uint8))
    (tmp_path / "a.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:-1])
    (tmp_path / "b.npy").write_bytes(b"")
    for name in ("a.npy", "b.npy"):
        refuse(from_file(name), SOURCE, name, "a NumPy array file", tmp_path)


@pytest.mark.parametrize("suffix", [".bin", ".dat", ".BIN"])
def test_raw_files_need_a_type(suffix: str, tmp_path: Path) -> None:
    name = f"a{suffix}"
    (tmp_path / name).write_bytes(bytes([1, 0, 2, 0, 3]))
    resource = read(from_file(name, "UINT16"), tmp_path)
    assert resource.data.tolist() == [1, 0, 2, 0, 3]
    assert resource.elements == 2
    place = "resources.r.initialValuesDataType"
    refuse(from_file(name), place, "missing", "this field", tmp_path)


def test_files_are_found_beside_the_model_or_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, current = tmp_path / "models", tmp_path / "current"
    for folder, value in ((beside, 1), (current, 2)):
        folder.mkdir()
        (folder / "both.bin").write_bytes(bytes([value]))
    (current / "one.bin").write_bytes(bytes([3]))
    monkeypatch.chdir(current)
    assert elements(read(from_file("both.bin", "UINT8"), beside)) == [1]
    assert elements(read(from_file("one.bin", "UINT8"), beside)) == [3]
    refuse(from_file("none.bin", "UINT8"), SOURCE, "none.bin", f"a file in {beside}", beside)


def test_empty_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"")
    refuse(
        from_file("a.bin", "UINT8"),
        "resources.r.initialValues",
        {"sourcePath": "a.bin"},
        "at least one element",
        tmp_path,
    )


def test_file_initializers_have_one_field(tmp_path: Path) -> None:
    values = {"sourcePath": "a.bin", "value": 1}
    refuse(typed("UINT8", values), "resources.r.initialValues", values, "one of an array", tmp_path)


# --- Images -------------------------------------------------------------------------------------


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Write a picture of two rows of three pixels without equal channels; return its folder."""
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 10
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return tmp_path


def test_images_are_planes_of_bytes(picture: Path) -> None:
    want = (np.arange(18).reshape(2, 3, 3) * 10).transpose(2, 0, 1).ravel().tolist()
    assert elements(read(from_file("a.png", "UINT8"), picture)) == want


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
def test_images_are_floats_from_0_to_1(data_type: str, picture: Path) -> None:
    resource = read(from_file("a.png", data_type, resampleSize=[1, 3, 2, 3]), picture)
    planes = (np.arange(18).reshape(2, 3, 3) * 10).transpose(2, 0, 1).ravel()
    dtype = DataType[data_type].dtype
    want = (planes.astype(np.float32) / np.float32(255)).astype(dtype)
    assert elements(resource) == want.tolist()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_scaled(channels: int, picture: Path) -> None:
    fields = from_file("a.png", "UINT8", resampleSize=[1, channels, 4, 5], resampleMode="scale")
    assert read(fields, picture).data.size == channels * 20


@pytest.mark.parametrize("size", [[2, 3, 4, 5], [1, 2, 4, 5], [3, 4, 5], [1, 3, 0, 5]])
def test_images_have_one_three_or_four_channels(size: list[int], picture: Path) -> None:
    with pytest.raises(ModelFileError, match=r"resources\.r\.resampleSize"):
        read(from_file("a.png", "UINT8", resampleSize=size), picture)


SHOWN: dict[str, tuple[str, str, dict[str, Any], list[list[int]]]] = {
    "black and white": ("1", "png", {}, [[255]]),
    "grey": ("L", "png", {}, [[200]]),
    "grey, see-through": ("LA", "png", {}, [[200], [200], [200], [7]]),
    "palette": ("P", "png", {}, [[20], [40], [60]]),
    "palette, one see-through": ("P", "png", {"transparency": 3}, [[20], [40], [60], [0]]),
    "colour, one see-through": (
        "RGB",
        "png",
        {"transparency": (20, 40, 60)},
        [[20], [40], [60], [0]],
    ),
    "colour, see-through": ("RGBA", "png", {}, [[20], [40], [60], [7]]),
    "ink": ("CMYK", "jpg", {"quality": 100}, [[255], [0], [0]]),
}
"""Mode, suffix, how it is saved, and the planes of a single pixel."""

PIXELS: dict[str, Any] = {
    "1": 1,
    "L": 200,
    "LA": (200, 7),
    "P": 3,
    "RGB": (20, 40, 60),
    "RGBA": (20, 40, 60, 7),
    "CMYK": (0, 255, 255, 0),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_images_keep_what_they_show(kind: str, tmp_path: Path) -> None:
    mode, suffix, options, planes = SHOWN[kind]
    image = Image.new(mode, (1, 1), PIXELS[mode])
    if mode == "P":
        image.putpalette([0, 0, 0] * 3 + [20, 40, 60])
    image.save(tmp_path / f"a.{suffix}", **options)
    data = read(from_file(f"a.{suffix}", "UINT8"), tmp_path).data
    assert data.reshape(len(planes), 1).tolist() == planes


def deep_colour() -> bytes:
    """Return a PNG of one pixel with 16 bits per channel, which Pillow cannot write."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc32(name + data))

    head = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    pixel = zlib.compress(struct.pack(">BHHH", 0, 1, 2, 3))
    parts = {b"IHDR": head, b"IDAT": pixel, b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts.items())


@pytest.mark.parametrize("size", [{}, {"resampleSize": [1, 1, 1, 1]}], ids=["own", "scaled"])
@pytest.mark.parametrize("kind", ["grey", "colour", "float"])
def test_deep_images_are_refused_as_they_would_be_cut(
    kind: str, size: dict[str, object], tmp_path: Path
) -> None:
    if kind == "colour":
        (tmp_path / "a.png").write_bytes(deep_colour())
    else:
        pixel = np.full((1, 1), 300, np.uint16 if kind == "grey" else np.float32)
        Image.fromarray(pixel).save(tmp_path / "a.png", "PNG" if kind == "grey" else "TIFF")
    for data_type in ("UINT8", "FLOAT32"):
        fields = from_file("a.png", data_type, **size)
        refuse(fields, SOURCE, "a.png", "an image with 8 bits a channel", tmp_path)


def test_an_image_like_a_bomb_is_refused(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2)
    refuse(from_file("a.png", "UINT8"), SOURCE, "a.png", "decompression bomb", picture)


def test_what_is_no_image_is_refused(picture: Path) -> None:
    (picture / "b.png").write_bytes(b"no image")
    refuse(from_file("b.png", "UINT8"), SOURCE, "b.png", "an image that Pillow can read", picture)
    place = "resources.r.initialValuesDataType"
    refuse(from_file("a.png", "INT16"), place, "INT16", "FLOAT32, FLOAT16, UINT8", picture)
    refuse(from_file("a.png"), place, "missing", "this field", picture)
    fields = from_file("a.png", "UINT8", resampleMode="crop")
    refuse(fields, "resources.r.resampleMode", "crop", "one of scale", picture)


def test_only_images_are_scaled(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"12")
    fields = from_file("a.bin", "UINT8", resampleSize=[1, 1, 1, 2])
    refuse(fields, "resources.r.resampleSize", [1, 1, 1, 2], "an image as the source", tmp_path)
