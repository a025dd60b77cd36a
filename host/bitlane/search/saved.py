"""The file of a saved index: written in one step, read without trust."""

import io
import struct
import zipfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from .._typing import AnyArray
from ..errors import NpyError, SearchError
from ..files import replacing
from ..npy import read_array
from ..text import printable
from .blocks import Rows
from .ids import Ids, RowIds, as_own_ids
from .results import metric_of

_FORMATS: Final = ("bitlane.BinaryIndex 1", "bitlane.BinaryIndex 2")
"""Contents of the member ``format``, with the version: the second one may have ids."""

_BROKEN: Final = (
    AttributeError,
    EOFError,
    LookupError,
    NpyError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)
"""Errors of Python's archives for a file that is not one, or that is damaged."""

_MEMBERS: Final = {"format.npy", "metric.npy", "rows.npy"}
"""Members that each file has."""

_END: Final = struct.Struct("<10xH10x")
"""The last record of an archive without a comment: the number of its members."""

_LONGEST_WORD: Final = 4096
"""Most bytes of the members ``format`` and ``metric``."""


@dataclass(frozen=True, slots=True)
class SavedRows:
    """The content of a file: rows, the name of a metric, and own ids of the rows, if any."""

    rows: Rows
    metric: str
    ids: Ids | None


def write_rows(file: str | PathLike[str], saved: SavedRows) -> None:
    """Write ``file``, in one step. Raises ``SearchError`` if it cannot be written."""
    members = {"format": np.array(_FORMATS[-1]), "metric": np.array(saved.metric)}
    members["rows"] = saved.rows
    if saved.ids is not None:
        members["ids"] = saved.ids
    path = _path(file)
    try:
        with replacing(path) as target:
            np.savez(target, allow_pickle=False, **members)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SearchError(f"{_named(file)}: {reason}; expected one that can be written") from None


def read_rows(file: str | PathLike[str]) -> SavedRows:
    """Return the content of ``file``. Raises ``SearchError`` unless `write_rows` wrote it.

    Takes no more memory than the file has bytes.
    """
    path = _path(file)
    try:
        with path.open("rb") as source, zipfile.ZipFile(source) as archive:
            size = source.seek(0, io.SEEK_END)
            _expect_members(archive, source)
            written, metric = (_read_word(archive, name) for name in ("format", "metric"))
            if written not in _FORMATS:
                expected = " or ".join(map(repr, _FORMATS))
                raise _other(file, f"format {written!r:.60}, not {expected}")
            rows = _read_member(archive, "rows", size)
            ids = None
            if "ids.npy" in archive.namelist():
                ids = _read_member(archive, "ids", size)
    except OSError as error:
        raise _other(file, error.strerror or str(error)) from None
    except MemoryError:
        raise _other(file, "more rows than this computer's memory holds") from None
    except SearchError:
        raise
    except _BROKEN:
        raise _other(file, "not an index, or damaged") from None
    if rows.dtype != np.uint8 or rows.ndim != 2 or not rows.shape[1]:
        found = f"{rows.dtype!s:.60} and shape {rows.shape!s:.60}"
        raise _other(file, f"rows of {found}, not uint8 (n, bytes)")
    _expect_ids(file, ids, len(rows))
    return SavedRows(rows, metric_of(metric).name, ids)


def _expect_ids(file: str | PathLike[str], ids: AnyArray | None, rows: int) -> None:
    """Raise ``SearchError`` unless ``ids`` can be those of as many ``rows``."""
    if ids is None:
        return
    if ids.dtype != np.int64 or ids.shape != (rows,):
        found = f"{ids.dtype!s:.60} and shape {ids.shape!s:.60}"
        raise _other(file, f"ids of {found}, not int64 ({rows},)")
    try:
        RowIds().with_own(as_own_ids("ids", ids, rows))
    except SearchError as error:
        raise _other(file, str(error)) from None


def _expect_members(archive: zipfile.ZipFile, source: BinaryIO) -> None:
    """Raise ``NpyError`` if the directory of ``archive`` does not list all that was written.

    No checksum covers it: damaged, it could hide the ids.
    """
    source.seek(-_END.size, io.SEEK_END)
    (count,) = _END.unpack(source.read(_END.size))
    names = archive.namelist()
    if len(names) != count or set(names) - {"ids.npy"} != _MEMBERS:
        raise NpyError(f"{count} members; found {names}")


def _read_word(archive: zipfile.ZipFile, name: str) -> str:
    return str(_read_member(archive, name, _LONGEST_WORD))


def _read_member(archive: zipfile.ZipFile, name: str, most: int) -> AnyArray:
    """Return an array of an archive without compression. Raises one of `_BROKEN`."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > most:
        raise NpyError(f"{name}: {info.file_size} bytes, maybe compressed")
    with archive.open(info) as member:
        array = read_array(member, info.file_size)
        # The archive compares its checksum at the end of a member.
        if member.read(1):
            raise NpyError(f"{name}: more bytes than elements")
    return array


def _path(file: str | PathLike[str]) -> Path:
    try:
        return Path(file)
    except TypeError:
        raise SearchError(f"file: of type {type(file).__name__}; expected a path") from None


def _other(file: str | PathLike[str], reason: str) -> SearchError:
    text = printable(reason)
    return SearchError(f"{_named(file)}: {text}; expected one that BinaryIndex.save wrote")


def _named(file: str | PathLike[str]) -> str:
    return f"file: {printable(str(file))}"
