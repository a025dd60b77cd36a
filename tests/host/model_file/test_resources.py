"""Resources: every kind of initial values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bitlane.dml import DataType
from bitlane.model_file import ModelFileError
from bitlane.model_file.model import Resource
from bitlane.model_file.node import Node
from bitlane.model_file.resources import read_resource
from support.host.model_runner import buffer


def read(value: object, folder: Path = Path()) -> Resource:
    return read_resource("r", Node("m.json", "resources.r", value), folder)


def elements(resource: Resource) -> list[object]:
    values: list[object] = resource.data.view(resource.data_type.dtype).tolist()
    return values


# --- arrays, constants, sequences, lists --------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "DML_TENSOR_DATA_TYPE_"])
@pytest.mark.parametrize("data_type", list(DataType)[1:])
def test_arrays_of_every_type_by_short_or_full_name(data_type: DataType, prefix: str) -> None:
    resource = read(buffer(prefix + data_type.name, [1, 2, 3]))
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
def test_integers_in_their_range(data_type: str, low: int, high: int) -> None:
    assert elements(read(buffer(data_type, [low, high]))) == [low, high]


@pytest.mark.parametrize("data_type", ["FLOAT16", "FLOAT32", "FLOAT64"])
def test_floats_take_names_in_any_case(data_type: str) -> None:
    got = elements(read(buffer(data_type, [1.5, -2, "inf", "-Inf", "NaN"])))
    assert got[:4] == [1.5, -2, float("inf"), float("-inf")]
    assert got[4] != got[4]


def test_half_precision_is_rounded_by_way_of_single() -> None:
    # 1 + 2**-11 + 2**-40 lies just above the middle of two halves, but its single lies on it.
    value = 1 + 2**-11 + 2**-40
    assert np.float16(value) != 1
    assert elements(read(buffer("FLOAT16", [value]))) == [1]


def test_constants() -> None:
    resource = read(buffer("INT16", {"valueCount": 5, "value": -2}))
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
    assert elements(read(buffer(data_type, values))) == expected


def test_float_sequences_round_each_sum() -> None:
    values = elements(
        read(buffer("FLOAT32", {"valueCount": 1000, "valueStart": 0, "valueDelta": 0.1}))
    )
    total = np.float32(0)
    for got in values:
        assert got == total
        total += np.float32(0.1)


def test_lists_of_values_with_types_of_their_own() -> None:
    values = [
        {"name": "n", "type": "UINT32", "value": 6},
        {"type": "FLOAT16", "value": 1.0},
        {"type": "INT8", "value": -1},
    ]
    for fields in (buffer("UNKNOWN", values), {"initialValues": values}):
        resource = read(fields)
        assert resource.data_type is DataType.UNKNOWN
        assert resource.data.tolist() == [6, 0, 0, 0, 0x00, 0x3C, 0xFF]
        assert (resource.content, resource.size) == (7, 8)


@pytest.mark.parametrize(
    ("given", "content", "size"), [(None, 3, 4), (3, 3, 4), (5, 5, 8), (256, 256, 256)]
)
def test_sizes_are_inflated_to_words(given: int | None, content: int, size: int) -> None:
    resource = read(buffer("UINT8", [1, 2, 3], sizeInBytes=given))
    assert (resource.content, resource.size) == (content, size)
    assert resource.data.tolist() == [1, 2, 3]


# --- files --------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("suffix", [".bin", ".dat", ".BIN"])
def test_raw_files_need_a_type(suffix: str) -> None:
    name = f"a{suffix}"
    Path(name).write_bytes(bytes([1, 0, 2, 0, 3]))
    resource = read(from_file(name, "UINT16"))
    assert resource.data.tolist() == [1, 0, 2, 0, 3]
    assert resource.elements == 2


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
    with pytest.raises(ModelFileError, match=r"none\.bin.*; expected a file in .*models"):
        read(from_file("none.bin", "UINT8"), beside)


# --- images -------------------------------------------------------------------------------------

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
