"""Writes resources to files: whole, or not at all."""

import errno
import os
import secrets
import shutil
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .errors import ModelFileError
from .images import IMAGE_SUFFIXES, encode_image
from .model import Resource, WriteFile
from .node import Node

__all__ = ["write_atomically", "write_resource"]


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


def write_atomically(target: Path, data: bytes) -> None:
    """Replace ``target`` in one step: at any time it is the old file or the new one.

    A link stays one, to a file with the new content; a file that exists keeps its mode. Raises
    ``OSError``, also for what is there and no file.
    """
    target = Path(os.path.realpath(target))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is no file", str(target))
    # Not longer than the target's name may be.
    temporary = target.with_name(f".{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                # Before the content, which may be nobody else's to read.
                with suppress(PermissionError):
                    shutil.copymode(target, temporary)
            file.write(data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
