"""Resources: every kind of initial values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bitlane.dml import DataType
from bitlane.model_file import ModelFileError, Node, Resource, read_resource
from support.host.model_files import buffer, from_file


def read(value: object, folder: Path = Path()) -> Resource:
    return read_resource("r", Node("m.json", "resources.r", value), folder)


def elements(resource: Resource) -> list[object]:
    values: list[object] = resource.data.view(resource.data_type.dtype).tolist()
    return values


# --- arrays, constants, sequences, lists --------------------------------------------------------


def sequence(count: int, start: int, delta: float) -> dict[str, object]:
    return {"valueCount": count, "valueStart": start, "valueDelta": delta}


INF = float("inf")
LIST = [
    {"name": "n", "type": "UINT32", "value": 6},
    {"type": "FLOAT16", "value": 1.0},
    {"type": "INT8", "value": -1},
]


@pytest.mark.parametrize(
    ("data_type", "values", "wanted"),
    [
        *((kind.name, [1, 2, 3], [1, 2, 3]) for kind in list(DataType)[1:]),
        *(
            (kind, ends, ends)
            for kind, ends in [
                ("INT8", [-128, 127]),
                ("INT16", [-(2**15), 2**15 - 1]),
                ("INT64", [-(2**63), 2**63 - 1]),
                ("UINT8", [0, 255]),
                ("UINT32", [0, 2**32 - 1]),
                ("UINT64", [0, 2**64 - 1]),
            ]
        ),
        *(
            (kind, [1.5, -2, "inf", "-Inf", "NaN"], [1.5, -2, INF, -INF, float("nan")])
            for kind in ("FLOAT16", "FLOAT32", "FLOAT64")
        ),
        # Just above the middle of two halves, but its single lies on it.
        ("FLOAT16", [1 + 2**-11 + 2**-40], [1]),
        ("INT16", {"valueCount": 5, "value": -2}, [-2] * 5),
        ("FLOAT32", sequence(4, 1, 2.5), [1, 3.5, 6, 8.5]),
        ("INT8", sequence(3, 1, -1), [1, 0, -1]),
        ("UINT8", sequence(4, 254, 1), [254, 255, 0, 1]),  # integers wrap
        ("INT8", sequence(3, 127, 1), [127, -128, -127]),
    ],
)
@pytest.mark.parametrize("prefix", ["", "DML_TENSOR_DATA_TYPE_"])
def test_values(data_type: str, values: Any, wanted: list[float], prefix: str) -> None:
    resource = read(buffer(prefix + data_type, values))
    assert resource.data_type is DataType[data_type]
    assert str(elements(resource)) == str(np.array(wanted, resource.data_type.dtype).tolist())
    content = resource.data_type.itemsize * len(wanted)
    assert (resource.elements, resource.content) == (len(wanted), content)
    assert resource.size == -(-content // 4) * 4


def test_float_sequences_round_each_sum() -> None:
    values = elements(
        read(buffer("FLOAT32", {"valueCount": 1000, "valueStart": 0, "valueDelta": 0.1}))
    )
    total = np.float32(0)
    for got in values:
        assert got == total
        total += np.float32(0.1)


@pytest.mark.parametrize("fields", [buffer("UNKNOWN", LIST), {"initialValues": LIST}])
def test_lists_of_values_with_types_of_their_own(fields: dict[str, object]) -> None:
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


@pytest.mark.parametrize(
    "array",
    [
        *(np.arange(6).reshape(2, 3).astype(kind.dtype) for kind in list(DataType)[1:]),
        np.asfortranarray(np.arange(6, dtype=">u2").reshape(2, 3)),
    ],
    ids=lambda x: f"{x.dtype.str} {x.strides}",
)
def test_numpy_files_bring_their_type(array: Any) -> None:
    np.save("a.npy", array)
    data_type = DataType.from_numpy(array.dtype)
    for fields in (from_file("a.npy"), from_file("a.npy", data_type.name)):
        resource = read(fields)
        assert resource.data_type is data_type
        assert elements(resource) == [0, 1, 2, 3, 4, 5]


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


PIXELS = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 10
"""A picture of two rows of three pixels without equal channels."""
PLANES = PIXELS.transpose(2, 0, 1).ravel()
UNITS = PLANES.astype(np.float32) / np.float32(255)
SAME = {"resampleSize": [1, 3, 2, 3]}


@pytest.mark.parametrize(
    ("data_type", "options", "wanted"),
    [("UINT8", {}, PLANES), ("FLOAT32", SAME, UNITS), ("FLOAT16", SAME, UNITS.astype(np.float16))],
)
def test_images_are_planes_of_bytes_or_floats_from_0_to_1(
    data_type: str, options: dict[str, Any], wanted: Any
) -> None:
    Image.fromarray(PIXELS).save("a.png")
    assert elements(read(from_file("a.png", data_type, **options))) == wanted.tolist()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_scaled(channels: int) -> None:
    Image.fromarray(PIXELS).save("a.png")
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
