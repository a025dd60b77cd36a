"""Writes files whole or not at all, and knows before anything runs whether they can be written."""

import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .errors import BitlaneError


def write_atomically(target: Path, data: bytes) -> None:
    """Replace ``target`` by ``data`` as `replacing` does. Raises ``OSError``."""
    with replacing(target) as file:
        file.write(data)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file that becomes ``target`` in one step, which is the old one until the block ends.

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
            yield file
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def expected_instead(path: Path) -> str | None:
    """What is expected in place of ``path``, if no file can be created there; leaves nothing.

    Folders that are not there yet are no hindrance.
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
        # Permissions tell too little: root has them all, also where there are no files to make.
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError:
        return f"a folder that can be written to; {folder} cannot"


def expect_writable(option: str, path: Path) -> None:
    """Raises ``BitlaneError`` unless ``path`` can be created in a folder that is there."""
    wanted = expected_instead(path)
    if wanted is None and not path.parent.is_dir():
        wanted = f"a folder that is there; {path.parent} is not"
    if wanted is not None:
        raise BitlaneError(f"{option}: {path}; expected {wanted}")
