"""The file of an index: an archive of NumPy's that holds its rows and the name of its metric."""

import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Final

import numpy as np

from ..errors import SearchError
from ..files import replacing
from ..jobs.operands import AnyArray
from .database import Rows
from .metrics import metric_of

__all__ = ["read_rows", "write_rows"]

_FORMAT: Final = "bitlane.BinaryIndex 1"
"""What the member ``format`` says, with the version of the format."""

_BROKEN: Final = (
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy raises for a file that is no archive of its own, or that is damaged."""


def write_rows(file: str | PathLike[str], rows: Rows, metric: str) -> None:
    """Write ``file``, in one step. Raises ``SearchError`` if it cannot be written."""
    members = {"format": np.array(_FORMAT), "metric": np.array(metric), "rows": rows}
    path = _path(file)
    try:
        with replacing(path) as target:
            np.savez(target, allow_pickle=False, **members)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SearchError(f"file: {file}: {reason}; expected one that can be written") from None


def read_rows(file: str | PathLike[str]) -> tuple[Rows, str]:
    """Rows and metric of ``file``. Raises ``SearchError`` unless `write_rows` wrote it."""
    path = _path(file)
    try:
        with path.open("rb") as source, np.load(source, allow_pickle=False) as archive:
            members = {name: archive[name] for name in ("format", "metric", "rows")}
    except OSError as error:
        raise _other(file, error.strerror or str(error)) from None
    except (*_BROKEN, AttributeError, TypeError) as error:
        raise _other(file, f"no archive of an index ({type(error).__name__})") from None
    return _checked(file, members["rows"], str(members["format"]), str(members["metric"]))


def _checked(
    file: str | PathLike[str], rows: AnyArray, written: str, metric: str
) -> tuple[Rows, str]:
    if written != _FORMAT:
        raise _other(file, f"format {written!r}, not {_FORMAT!r}")
    if rows.dtype != np.uint8 or rows.ndim != 2 or not rows.shape[1]:
        raise _other(file, f"rows of {rows.dtype} and shape {rows.shape}, not uint8 (n, bytes)")
    return rows, metric_of(metric).name


def _path(file: str | PathLike[str]) -> Path:
    try:
        return Path(file)
    except TypeError:
        raise SearchError(f"file: of type {type(file).__name__}; expected a path") from None


def _other(file: str | PathLike[str], reason: str) -> SearchError:
    return SearchError(f"file: {file}: {reason}; expected one that BinaryIndex.save wrote")
