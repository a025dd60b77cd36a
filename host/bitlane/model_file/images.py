"""Files of resources: images, NumPy's arrays, raw bytes."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..dml import DataType
from ..errors import ModelFileError
from ..files import write_atomically
from .model import Resource, WriteFile
from .node import Node

if TYPE_CHECKING:
    from types import ModuleType

    from PIL.Image import Image
    from PIL.ImageFile import ImageFile


def encode_npy(array: NDArray[Any]) -> bytes:
    """Return the content of a NumPy array file."""
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, and make its folder if needed. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)


IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg"})

IMAGE_TYPES = (DataType.FLOAT32, DataType.FLOAT16, DataType.UINT8)
"""Floats from 0 to 1 as in DxDispatch, or (not in DxDispatch) the pixels' bytes themselves."""

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_DEEP = frozenset("IF")
"""First letters of Pillow's modes with channels of 16 and 32 bits."""

_UINT_LAST = 2**32 - 1

_MOST_PIXELS = 1 << 26
"""Largest image: 8192 times 8192 pixels, which take up to 2 GB while they are converted."""

_MOST_JPEG = 65_500
"""Pixels of the longest side of a JPEG image that its encoder takes."""

_FORMATS = ("PNG", "JPEG")
"""By default Pillow tries some 40 formats; one of them starts a program, Ghostscript."""


def read_image(node: Node, source: Node, path: Path, data_type: DataType) -> npt.NDArray[np.uint8]:
    """Return the bytes of an image as a tensor in NCHW order; ``node`` is the resource.

    ``resampleSize`` ``[1, C, H, W]`` scales the image; the default is its own size, with 1 channel
    for grey, 3 for colour and 4 for transparency. Raises ``ModelFileError``, also for channels of
    more than 8 bits, and ``OSError`` if the file cannot be read.
    """
    pillow = _pillow(source)
    _expect_type(node, data_type)
    mode = node.optional("resampleMode")
    if mode is not None:
        mode.choice(["scale"])
    size = _resample_size(node)
    with _readable(pillow, source), pillow.open(path, formats=_FORMATS) as image:
        _load(image, source)
        channels, height, width = size or (_channels(image), image.height, image.width)
        pixels = image.convert(_MODES[channels])
        if pixels.size != (width, height):
            pixels = pixels.resize((width, height), pillow.Resampling.BICUBIC)
        array = np.asarray(pixels, np.uint8).reshape(height, width, channels)
    planes = np.ascontiguousarray(array.transpose(2, 0, 1))
    if data_type is not DataType.UINT8:
        planes = (planes.astype(np.float32) / np.float32(255)).astype(data_type.dtype)
    return planes.reshape(-1).view(np.uint8)


def check_image(node: Node, data_type: DataType, dimensions: tuple[int, ...], suffix: str) -> None:
    """Raise ``ModelFileError`` unless a resource of NCHW ``dimensions`` can be an image."""
    jpeg = suffix in (".jpg", ".jpeg")
    _pillow(node)
    if data_type not in IMAGE_TYPES:
        names = ", ".join(member.name for member in IMAGE_TYPES)
        raise node.error(f"a resource of {names} for an image; this one is {data_type.name}")
    channels = (1, 3) if jpeg else tuple(_MODES)
    if len(dimensions) != 4 or dimensions[0] != 1 or dimensions[1] not in channels:
        names = ", ".join(map(str, channels))
        raise node.error(
            f"dimensions [1, channels, height, width] beside it, channels one of {names}"
        )
    if jpeg and max(dimensions[2:]) > _MOST_JPEG:
        raise node.error(f"a height and width of at most {_MOST_JPEG} for JPEG")


def encode_image(
    values: npt.NDArray[np.generic], dimensions: tuple[int, ...], suffix: str, node: Node
) -> bytes:
    """Return a PNG or JPEG file of a tensor in NCHW order. Floats are clamped to 0 to 1."""
    pillow = _pillow(node)
    _, channels, height, width = dimensions
    if values.dtype.kind == "f":
        scaled = np.clip(np.nan_to_num(values.astype(np.float32)), 0, 1) * np.float32(255)
        values = scaled.astype(np.uint8)
    planes = values.reshape(channels, height, width)
    pixels = np.ascontiguousarray(planes.transpose(1, 2, 0))
    image = pillow.fromarray(pixels[..., 0] if channels == 1 else pixels)
    file = BytesIO()
    image.save(file, format="PNG" if suffix == ".png" else "JPEG")
    return file.getvalue()


def _pillow(node: Node) -> "ModuleType":
    try:
        return importlib.import_module("PIL.Image")
    except ModuleNotFoundError:
        raise node.error("no image, as Pillow is not installed: pip install pillow") from None


def _resample_size(node: Node) -> tuple[int, int, int] | None:
    """Return channels, height and width of ``resampleSize``, if it is there."""
    size = node.optional("resampleSize")
    if size is None:
        return None
    numbers = size.integers(1, _UINT_LAST)
    if len(numbers) != 4 or numbers[0] != 1 or numbers[1] not in _MODES:
        raise size.error("[1, channels, height, width] with 1, 3 or 4 channels")
    _, channels, height, width = numbers
    if height * width > _MOST_PIXELS:
        raise size.error(f"at most {_MOST_PIXELS} pixels")
    return channels, height, width


@contextmanager
def _readable(pillow: "ModuleType", source: Node) -> Iterator[None]:
    """Raise ``ModelFileError`` for whatever Pillow's decoders raise in the block.

    ``OSError`` and ``MemoryError`` have other causes than the file's content.
    """
    try:
        yield
    except ModelFileError:
        raise
    except pillow.UnidentifiedImageError:
        raise source.error("an image that Pillow can read, PNG or JPEG") from None
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise source.error(f"an image that Pillow can read ({error})") from error


def _load(image: "ImageFile", source: Node) -> None:
    """Decode an image. Raises ``ModelFileError`` if it is too large or has deep channels."""
    if image.width * image.height > _MOST_PIXELS:
        raise source.error(f"an image of at most {_MOST_PIXELS} pixels")
    # Pillow cuts many deep channels to 8 bits in `load`, so that the file's mode is read first.
    deep = any("16" in str(tile[-1]) for tile in image.tile) or image.mode[0] in _DEEP
    image.load()
    if deep:
        raise source.error(
            "an image with 8 bits a channel; this one has more (save it with 8, or as a file .npy"
            " of UINT16 or FLOAT32, which keeps them)"
        )


def _channels(image: "Image") -> int:
    if image.has_transparency_data:
        return 4
    return 1 if image.mode in ("1", "L") else 3


def _expect_type(node: Node, data_type: DataType) -> None:
    if data_type not in IMAGE_TYPES:
        names = ", ".join(member.name for member in IMAGE_TYPES)
        raise node.required("initialValuesDataType").error(f"one of {names} for an image")


def write_resource(
    command: WriteFile, resource: Resource, data: npt.NDArray[np.uint8], file: str
) -> None:
    """Write the bytes ``data`` of a resource for the command; ``file`` is the model file.

    ``.bin`` and ``.dat`` get the resource's content unchanged, ``.npy`` and images the dimensions
    of the command. Raises ``ModelFileError`` if the file cannot be written.
    """
    suffix = command.target.suffix.lower()
    if suffix in (".bin", ".dat"):
        encoded = data[: resource.content].tobytes()
    else:
        dtype = resource.data_type.dtype
        size = int(np.prod(command.dimensions, dtype=np.int64)) * dtype.itemsize
        values = data[:size].view(dtype).reshape(command.dimensions)
        if suffix in IMAGE_SUFFIXES:
            node = Node(file, command.path, str(command.target))
            encoded = encode_image(values, command.dimensions, suffix, node)
        else:
            encoded = encode_npy(values)
    try:
        write_file(command.target, encoded)
    except OSError as error:
        raise ModelFileError(
            file,
            command.path,
            str(command.target),
            f"a file that can be written ({error.strerror or error})",
        ) from error
