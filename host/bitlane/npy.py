"""NumPy's array files, read without trust: nothing is executed, and memory is bounded."""

import os
from collections.abc import Callable
from io import BytesIO
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Final

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from .errors import NpyError

_MAGIC: Final = b"\x93NUMPY"

_HEADERS: Final[dict[tuple[int, ...], tuple[int, Callable[..., Any]]]] = {
    (1, 0): (2, npy_format.read_array_header_1_0),
    (2, 0): (4, npy_format.read_array_header_2_0),
}
"""Bytes of a header's length, and its reader, by version.

Version 3 is for names of fields, which no array here has.
"""

_LONGEST_HEADER: Final = 10_000
"""Longest header that NumPy reads."""

_BAD_HEADER: Final = (
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
)
"""Errors of NumPy and of Python's parser for a damaged header."""

_CHUNK: Final = 1 << 20
"""Bytes that are read at once."""


def read_npy(path: Path) -> NDArray[Any]:
    """Return the array in a file. Raises ``NpyError``, ``OSError`` or ``MemoryError``."""
    with path.open("rb") as file:
        try:
            return read_array(file, os.fstat(file.fileno()).st_size)
        except NpyError as error:
            raise NpyError(f"a NumPy array file ({error})") from None


def read_array(file: IO[bytes], size: int) -> NDArray[Any]:
    """Return the array in the next ``size`` bytes of ``file``.

    Raises ``NpyError``, and ``MemoryError`` for more elements than this computer can hold.
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        raise NpyError("it does not start like one")
    shape, fortran_order, dtype = _read_header(file)
    if dtype.hasobject or dtype.subdtype is not None or not dtype.itemsize:
        raise NpyError(f"elements of type {dtype!s:.60}; expected numbers")
    if min(shape, default=0) < 0:
        raise NpyError(f"shape {shape!s:.60}; expected 0 or more")
    needed = prod(shape) * dtype.itemsize
    if needed > size:
        raise NpyError(f"shape {shape!s:.60}; expected no more elements than there are bytes")
    content = np.empty(needed, np.uint8)
    _fill(content, file)
    try:
        return content.view(dtype).reshape(shape, order="F" if fortran_order else "C")
    except (OverflowError, TypeError, ValueError) as error:
        raise NpyError(f"shape {shape!s:.60}: {error!s:.60}") from None


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of an array, after the magic bytes. Raises ``NpyError``."""
    version = tuple(file.read(2))
    if version not in _HEADERS:
        raise NpyError(f"version {version}; expected {' or '.join(map(str, _HEADERS))}")
    width, read = _HEADERS[version]
    prefix = file.read(width)
    size = int.from_bytes(prefix, "little")
    if size > _LONGEST_HEADER:
        raise NpyError(f"a header of {size} bytes; expected at most {_LONGEST_HEADER}")
    try:
        header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(
            BytesIO(prefix + file.read(size))
        )
        return header
    except _BAD_HEADER as error:
        raise NpyError(f"its header: {error!s:.60}") from None


def _fill(content: NDArray[np.uint8], file: IO[bytes]) -> None:
    """Read ``content`` from ``file``. Raises ``NpyError`` if it ends before."""
    done = 0
    while done < content.size:
        data = file.read(min(_CHUNK, content.size - done))
        if not data:
            raise NpyError(f"{done} bytes of elements; expected {content.size}")
        content[done : done + len(data)] = np.frombuffer(data, np.uint8)
        done += len(data)
