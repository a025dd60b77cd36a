"""Writes resources to files, in the form that their suffixes ask for."""

from io import BytesIO

import numpy as np
import numpy.typing as npt

from ..files import write_atomically
from .errors import ModelFileError
from .images import IMAGE_SUFFIXES, encode_image
from .model import Resource, WriteFile
from .node import Node

__all__ = ["write_resource"]


def write_resource(
    command: WriteFile, resource: Resource, data: npt.NDArray[np.uint8], file: str
) -> None:
    """Write the bytes ``data`` of a resource as the command asks; ``file`` is the model file.

    ``.bin`` and ``.dat`` get the resource's content as it is, ``.npy`` and images the dimensions
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
            buffer = BytesIO()
            np.save(buffer, values, allow_pickle=False)
            encoded = buffer.getvalue()
    try:
        command.target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(command.target, encoded)
    except OSError as error:
        raise ModelFileError(
            file,
            command.path,
            str(command.target),
            f"a file that can be written ({error.strerror or error})",
        ) from error
