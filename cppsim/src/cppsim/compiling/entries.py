"""Entries of a cache on disk: a checksum of their files, their sizes, and their removal.

An entry is a folder ``kind/key`` in the folder of the cache.
"""

import contextlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORK = ".work-"
"""Part of the names of folders that are being filled or removed."""

_CHECKSUMS = "checksums.json"

_KEY = re.compile("[0-9a-f]{32}")
"""The name of an entry that was made before entries had checksums."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder, its bytes, and the time of its last use in seconds."""

    folder: Path
    size: int
    used: float


def seal(folder: Path) -> None:
    """Write the sizes and checksums of the files of an entry into it."""
    sums = {str(path.relative_to(folder)): _sum(path) for path in _files(folder)}
    (folder / _CHECKSUMS).write_text(json.dumps(sums), encoding="utf-8")


def is_whole(folder: Path) -> bool:
    """Return whether the files of an entry are those that were sealed.

    CRC-32 takes 0.4 ms for 1 MB; SHA-256 takes three times as long.
    """
    try:
        sums = json.loads((folder / _CHECKSUMS).read_text(encoding="utf-8"))
        return all(_sum(folder / name) == known for name, known in sums.items())
    except (AttributeError, OSError, ValueError):
        return False


def entries(root: Path) -> list[Entry]:
    """Return the entries of the cache in ``root``, those used last at the end."""
    found: list[Entry] = []
    for folder in root.glob("*/*"):
        sealed = (folder / _CHECKSUMS).is_file()
        if WORK in folder.name or not (sealed or _KEY.fullmatch(folder.name)):
            continue
        try:
            size = sum(path.lstat().st_size for path in _files(folder))
            found.append(Entry(folder, size, folder.stat().st_mtime))
        except FileNotFoundError:  # removed by another process
            continue
    return sorted(found, key=lambda entry: entry.used)


def remove(folder: Path) -> None:
    """Remove an entry; other processes see all of it or nothing. Raises ``OSError``."""
    gone = folder.with_name(f"{folder.name}{WORK}{os.getpid()}")
    try:
        folder.rename(gone)
    except FileNotFoundError:  # removed by another process
        return
    shutil.rmtree(gone, ignore_errors=True)


def shrink(root: Path, limit: int) -> None:
    """Remove the entries that were used longest ago until ``limit`` bytes hold the others.

    Raises ``OSError``.
    """
    sweep(root)
    found = entries(root)
    excess = sum(entry.size for entry in found) - limit
    for entry in found[:-1]:
        if excess <= 0:
            break
        remove(entry.folder)
        excess -= entry.size


def sweep(root: Path) -> None:
    """Remove locks and unfinished entries of killed processes."""
    for path in (*root.glob(f"*/*{WORK}*"), *root.glob("*/*.lock")):
        key = path.name.partition(WORK)[0].removesuffix(".lock")
        if not _is_locked(path.with_name(f"{key}.lock")):
            with contextlib.suppress(OSError):  # removed by another process
                path.unlink() if path.is_file() else shutil.rmtree(path)


def _is_locked(path: Path) -> bool:
    """Return whether a living process may hold the lock ``path``."""
    try:
        import fcntl

        with path.open(encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except (ImportError, OSError):
        return True
    return False


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            if not path.is_symlink() and name != _CHECKSUMS:
                yield path


def _sum(path: Path) -> list[int]:
    content = path.read_bytes()
    return [len(content), zlib.crc32(content)]
