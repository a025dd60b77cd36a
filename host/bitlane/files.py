"""Atomic writes of files, checks that a file can be written, and sizes as people write them."""

import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from .errors import BitlaneError


def write_atomically(target: Path, data: bytes) -> None:
    """Replace ``target`` by ``data`` as `replacing` does. Raises ``OSError``."""
    with replacing(target) as file:
        file.write(data)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``target`` in one step at the end of the block.

    A symbolic link stays, and points to the new content; an existing file keeps its mode. Raises
    ``OSError``, also if ``target`` is not a file.
    """
    target = Path(os.path.realpath(target))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not a file", str(target))
    # Not longer than the target's name may be.
    temporary = target.with_name(f".{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                # Before the content, which others may not be allowed to read.
                with suppress(PermissionError):
                    shutil.copymode(target, temporary)
            yield file
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def expected_instead(path: Path) -> str | None:
    """Return the expected thing if no file can be created at ``path``, else None.

    Folders may be missing. No file is left behind.
    """
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return "a file, not a folder"
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        return f"a file that can be created ({error.strerror or error})"
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        return f"a file in a folder; {folder} is none"
    try:
        # Permissions are not enough: root has all of them, even on a read-only file system.
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError:
        return f"a folder that can be written to; {folder} cannot"


def expect_writable(option: str, path: Path) -> None:
    """Raise ``BitlaneError`` unless ``path`` can be created in an existing folder."""
    wanted = expected_instead(path)
    if wanted is None and not path.parent.is_dir():
        wanted = f"a folder that is there; {path.parent} is not"
    if wanted is not None:
        raise BitlaneError(f"{option}: {path}; expected {wanted}")


_SUFFIXES: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``4096``, ``0x1000`` or ``64KiB``, ``MiB``, ``GiB``.

    Raises ``ValueError``.
    """
    number, factor = text, 1
    for suffix, value in _SUFFIXES.items():
        if text.endswith(suffix):
            number, factor = text.removesuffix(suffix), value
    size = int(number, 0) * factor
    if size < 0:
        raise ValueError(f"{text}: expected 0 or more")
    return size
