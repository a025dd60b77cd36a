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
    """Expect that a resource is refused at ``path`` in it."""
    with pytest.raises(ModelFileError) as caught:
        read(value, folder)
    error = caught.value
    assert (error.file, error.path, error.value) == ("m.json", f"resources.r{path}", found)
    assert expected in error.expected
    assert f"m.json: resources.r{path} is " in str(error)


TYPE, VALUES, SIZE = ".initialValuesDataType", ".initialValues", ".sizeInBytes"
SOURCE = ".initialValues.sourcePath"


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
    for value in (low - 1, high + 1, 1.0, True, "1", None, [1]):
        expected = f"an integer from {low} to {high}"
        refuse(typed(data_type, [0, value]), f"{VALUES}[1]", value, expected)


@pytest.mark.parametrize("data_type", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_floats_take_names_in_any_case(data_type: str) -> None:
    got = elements(read(typed(data_type, [1.5, -2, "inf", "-Inf", "NaN"])))
    assert got[:4] == [1.5, -2, float("inf"), float("-inf")]
    assert got[4] != got[4]


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        ("FLOAT16", 65520, "FLOAT16 can hold"),
        ("FLOAT32", 1e39, "FLOAT32 can hold"),
        ("FLOAT64", 10**400, "FLOAT64 can hold"),
        ("FLOAT32", -1e39, "FLOAT32 can hold"),
        *(
            ("FLOAT32", value, 'a number, "nan", "inf" or "-inf"')
            for value in ("infinity", "1.0", True, None, {})
        ),
    ],
)
def test_floats_take_nothing_else(data_type: str, value: object, expected: str) -> None:
    refuse(typed(data_type, [value]), f"{VALUES}[0]", value, expected)


def test_half_precision_is_rounded_by_way_of_single() -> None:
    # 1 + 2**-11 + 2**-40 lies just above the middle of two halves, but its single lies on it.
    value = 1 + 2**-11 + 2**-40
    assert np.float16(value) != 1
    assert elements(read(typed("FLOAT16", [value]))) == [1]


def test_constants() -> None:
    resource = read(typed("INT16", {"valueCount": 5, "value": -2}))
    assert elements(resource) == [-2] * 5
    assert (resource.content, resource.size) == (10, 12)


@pytest.mark.parametrize(
    ("data_type", "start", "delta", "expected"),
    [
        ("FLOAT32", 1, 2.5, [1, 3.5, 6, 8.5]),
        ("INT8", 1, -1, [1, 0, -1]),
        ("UINT8", 254, 1, [254, 255, 0, 1]),  # integers wrap
        ("INT8", 127, 1, [127, -128, -127]),
    ],
)
def test_sequences(data_type: str, start: int, delta: float, expected: list[float]) -> None:
    values = {"valueCount": len(expected), "valueStart": start, "valueDelta": delta}
    assert elements(read(typed(data_type, values))) == expected


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
        refuse(typed("UINT8", values), f"{VALUES}.valueCount", count, "1 to ")


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
        refuse(typed("UNKNOWN", values), TYPE, "UNKNOWN", "a data type")
        refuse({"initialValues": values}, TYPE, "missing", "field")
    refuse(typed("UNKNOWN", [1]), f"{VALUES}[0]", 1, "an object")
    item = {"type": "UNKNOWN", "value": 1}
    refuse(typed("UNKNOWN", [item]), f"{VALUES}[0].type", "UNKNOWN", "data type")


# --- Sizes and fields ---------------------------------------------------------------------------

BOTH = {"sourcePath": "a.bin", "value": 1}
"""An initializer from a file has one field."""


@pytest.mark.parametrize(
    ("given", "content", "size"), [(None, 3, 4), (3, 3, 4), (5, 5, 8), (256, 256, 256)]
)
def test_sizes_are_inflated_to_words(given: int | None, content: int, size: int) -> None:
    resource = read(typed("UINT8", [1, 2, 3], sizeInBytes=given))
    assert (resource.content, resource.size) == (content, size)
    assert resource.data.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("value", "path", "found", "expected"),
    [
        (typed("UINT16", [1, 2], sizeInBytes=3), SIZE, 3, "at least 4"),
        (typed("UINT8", [1], sizeInBytes="4"), SIZE, "4", "an integer"),
        ([], "", [], "an object"),
        ({}, VALUES, "missing", "this field"),
        (typed("UINT7", [1]), TYPE, "UINT7", "one of UNKNOWN, FLOAT"),
        (typed("UINT8", []), VALUES, [], "at least one element"),
        (typed("UINT8", 5), VALUES, 5, "an array, or an object"),
        (typed("UINT8", {}), VALUES, {}, "valueCount and value"),
        (typed("UINT8", "deferred"), VALUES, "deferred", "ONNX"),
        (typed("UINT8", [1], value=2), ".value", 2, "a buffer has type"),
        (typed("UINT8", [1], type="texture"), ".type", "texture", "one of buffer"),
        (
            typed("UINT8", [1], initialValuesOffsetInBytes=4),
            ".initialValuesOffsetInBytes",
            4,
            "0: the values stand first",
        ),
        (typed("UINT8", [1], resampleMode="scale"), ".resampleMode", "scale", "image"),
        (
            typed("UINT8", {"value": 1, "valueStart": 2, "valueCount": 3}),
            f"{VALUES}.valueStart",
            2,
            "no such field",
        ),
        (typed("UINT8", {"value": 1}), f"{VALUES}.valueCount", "missing", "field"),
        (typed("UINT8", BOTH), VALUES, BOTH, "one of an array"),
    ],
)
def test_refuses(value: object, path: str, found: object, expected: str) -> None:
    refuse(value, path, found, expected)


# --- Files --------------------------------------------------------------------------------------


def from_file(name: str, data_type: str | None = None, **fields: object) -> dict[str, object]:
    values = {"initialValues": {"sourcePath": name}, **fields}
    return values if data_type is None else {"initialValuesDataType": data_type, **values}


@pytest.mark.parametrize("data_type", list(DataType)[1:])
def test_numpy_files_bring_their_type(data_type: DataType) -> None:
    array = np.arange(6).reshape(2, 3).astype(data_type.dtype)
    np.save("a.npy", array)
    for fields in (from_file("a.npy"), from_file("a.npy", data_type.name)):
        resource = read(fields)
        assert resource.data_type is data_type
        assert elements(resource) == [0, 1, 2, 3, 4, 5]


def test_numpy_files_in_any_order() -> None:
    array = np.asfortranarray(np.arange(6, dtype=">u2").reshape(2, 3))
    np.save("a.npy", array)
    assert elements(read(from_file("a.npy"))) == [0, 1, 2, 3, 4, 5]


def test_numpy_files_of_another_type_are_refused() -> None:
    np.save("a.npy", np.zeros(2, np.uint16))
    refuse(from_file("a.npy", "UINT8"), TYPE, "UINT8", "UINT16, the type")
    np.save("b.npy", np.zeros(2, np.bool_))
    refuse(from_file("b.npy"), SOURCE, "b.npy", "one of DirectML's data types")


def test_broken_numpy_files_are_refused_and_objects_are_not_executed() -> None:
    np.save("whole.npy", np.zeros(100, np.uint8))
    Path("a.npy").write_bytes(Path("whole.npy").read_bytes()[:-1])
    Path("b.npy").write_bytes(b"")
    np.save("c.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("a.npy", "b.npy", "c.npy"):
        refuse(from_file(name), SOURCE, name, "a NumPy array file")


@pytest.mark.parametrize("suffix", [".bin", ".dat", ".BIN"])
def test_raw_files_need_a_type(suffix: str) -> None:
    name = f"a{suffix}"
    Path(name).write_bytes(bytes([1, 0, 2, 0, 3]))
    resource = read(from_file(name, "UINT16"))
    assert resource.data.tolist() == [1, 0, 2, 0, 3]
    assert resource.elements == 2
    refuse(from_file(name), TYPE, "missing", "this field")


def test_files_beside_the_model_or_in_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, current = folder / "models", folder / "current"
    for each, value in ((beside, 1), (current, 2)):
        each.mkdir()
        (each / "both.bin").write_bytes(bytes([value]))
    (current / "one.bin").write_bytes(bytes([3]))
    monkeypatch.chdir(current)
    assert elements(read(from_file("both.bin", "UINT8"), beside)) == [1]
    assert elements(read(from_file("one.bin", "UINT8"), beside)) == [3]
    refuse(from_file("none.bin", "UINT8"), SOURCE, "none.bin", f"a file in {beside}", beside)


def test_empty_files_are_refused() -> None:
    Path("a.bin").write_bytes(b"")
    found = {"sourcePath": "a.bin"}
    refuse(from_file("a.bin", "UINT8"), VALUES, found, "at least one element")


# --- Images -------------------------------------------------------------------------------------

RGB = (20, 40, 60)


@pytest.fixture
def picture() -> None:
    """Write a picture of two rows of three pixels without equal channels."""
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 10
    Image.fromarray(pixels).save("a.png")


@pytest.mark.usefixtures("picture")
def test_images_are_planes_of_bytes() -> None:
    want = (np.arange(18).reshape(2, 3, 3) * 10).transpose(2, 0, 1).ravel().tolist()
    assert elements(read(from_file("a.png", "UINT8"))) == want


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.usefixtures("picture")
def test_images_are_floats_from_0_to_1(data_type: str) -> None:
    resource = read(from_file("a.png", data_type, resampleSize=[1, 3, 2, 3]))
    planes = (np.arange(18).reshape(2, 3, 3) * 10).transpose(2, 0, 1).ravel()
    dtype = DataType[data_type].dtype
    want = (planes.astype(np.float32) / np.float32(255)).astype(dtype)
    assert elements(resource) == want.tolist()


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.usefixtures("picture")
def test_images_are_scaled(channels: int) -> None:
    fields = from_file("a.png", "UINT8", resampleSize=[1, channels, 4, 5], resampleMode="scale")
    assert read(fields).data.size == channels * 20


@pytest.mark.parametrize("size", [[2, 3, 4, 5], [1, 2, 4, 5], [3, 4, 5], [1, 3, 0, 5]])
@pytest.mark.usefixtures("picture")
def test_images_have_one_three_or_four_channels(size: list[int]) -> None:
    with pytest.raises(ModelFileError, match=r"resources\.r\.resampleSize"):
        read(from_file("a.png", "UINT8", resampleSize=size))


@pytest.mark.parametrize(
    ("mode", "pixel", "options", "shown"),
    [
        pytest.param("1", 1, {}, [255], id="black and white"),
        pytest.param("L", 200, {}, [200], id="grey"),
        pytest.param("LA", (200, 7), {}, [200, 200, 200, 7], id="grey, see-through"),
        pytest.param("P", 3, {}, [20, 40, 60], id="palette"),
        pytest.param("P", 3, {"transparency": 3}, [20, 40, 60, 0], id="palette, see-through"),
        pytest.param("RGB", RGB, {"transparency": RGB}, [*RGB, 0], id="colour, one see-through"),
        pytest.param("RGBA", (*RGB, 7), {}, [*RGB, 7], id="colour, see-through"),
        pytest.param("CMYK", (0, 255, 255, 0), {"quality": 100}, [255, 0, 0], id="ink"),
    ],
)
def test_image_modes(mode: str, pixel: Any, options: dict[str, Any], shown: list[int]) -> None:
    image = Image.new(mode, (1, 1), pixel)
    if mode == "P":
        image.putpalette([0, 0, 0] * 3 + [20, 40, 60])
    file = "a.jpg" if mode == "CMYK" else "a.png"
    image.save(file, **options)
    assert read(from_file(file, "UINT8")).data.tolist() == shown


def png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc32(name + data))


def deep_colour() -> bytes:
    """Return a PNG of one pixel with 16 bits per channel, which Pillow cannot write."""
    head = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    pixel = zlib.compress(struct.pack(">BHHH", 0, 1, 2, 3))
    parts = {b"IHDR": head, b"IDAT": pixel, b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts.items())


@pytest.mark.parametrize("size", [{}, {"resampleSize": [1, 1, 1, 1]}], ids=["own", "scaled"])
@pytest.mark.parametrize("kind", ["grey", "colour"])
def test_deep_images_are_refused_as_they_would_be_cut(kind: str, size: dict[str, object]) -> None:
    if kind == "colour":
        Path("a.png").write_bytes(deep_colour())
    else:
        Image.fromarray(np.full((1, 1), 300, np.uint16)).save("a.png")
    for data_type in ("UINT8", "FLOAT32"):
        fields = from_file("a.png", data_type, **size)
        refuse(fields, SOURCE, "a.png", "an image with 8 bits a channel")


@pytest.mark.usefixtures("picture")
def test_an_image_like_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2)
    refuse(from_file("a.png", "UINT8"), SOURCE, "a.png", "decompression bomb")


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Return a PNG of grey pixels without their data, with ``chunks`` before its end."""
    head = b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = (head, *chunks, (b"IDAT", zlib.compress(bytes(9))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)


INFLATING = b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 21))

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(x) (w) file\n%%EOF\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (png(1, 1, INFLATING), "an image that Pillow can read (Decompressed data too large"),
        (png(8200, 8200), "an image of at most 67108864 pixels"),
        (EPS, "an image that Pillow can read, PNG or JPEG"),
        (b"GIF89a" + bytes(99), "an image that Pillow can read, PNG or JPEG"),
    ],
)
def test_images_of_too_much_or_of_other_formats(content: bytes, expected: str) -> None:
    Path("b.png").write_bytes(content)
    refuse(from_file("b.png", "UINT8"), SOURCE, "b.png", expected)


@pytest.mark.usefixtures("picture")
@pytest.mark.parametrize("side", [8193, 60_000, 2**32 - 1])
def test_images_are_not_made_larger_than_memory(side: int) -> None:
    size = [1, 4, side, side]
    fields = from_file("a.png", "UINT8", resampleSize=size)
    refuse(fields, ".resampleSize", size, "at most 67108864 pixels")


@pytest.mark.usefixtures("picture")
def test_what_is_no_image_is_refused() -> None:
    Path("b.png").write_bytes(b"no image")
    refuse(from_file("b.png", "UINT8"), SOURCE, "b.png", "an image that Pillow can read")
    refuse(from_file("a.png", "INT16"), TYPE, "INT16", "FLOAT32, FLOAT16, UINT8")
    refuse(from_file("a.png"), TYPE, "missing", "this field")
    fields = from_file("a.png", "UINT8", resampleMode="crop")
    refuse(fields, ".resampleMode", "crop", "one of scale")


def test_only_images_are_scaled() -> None:
    Path("a.bin").write_bytes(b"12")
    fields = from_file("a.bin", "UINT8", resampleSize=[1, 1, 1, 2])
    refuse(fields, ".resampleSize", [1, 1, 1, 2], "an image as the source")
