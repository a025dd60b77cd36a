"""A folder of built things by content key, safe for many processes at once."""

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["CACHE_VARIABLE", "CacheWarning", "cache_folder", "cached"]

CACHE_VARIABLE = "BITLANE_CACHE"
"""Environment variable that names the cache folder."""


class CacheWarning(UserWarning):
    """The cache's folder cannot be used; what is built is forgotten when Python ends."""


def cache_folder() -> Path:
    """``BITLANE_CACHE``, else ``bitlane`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Raises ``RuntimeError`` where none is set for a user who has no home folder.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".cache") / "bitlane"


def cached(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder of ``key``, which ``build`` fills if it is not there yet.

    ``build`` gets an empty folder, which appears under its key only once it is complete. Processes
    that ask for the same key wait for the first one instead of building it, too.

    Where the cache cannot be written a temporary folder takes its place, as `CacheWarning` says.
    """
    try:
        root = cache_folder() / kind
    except RuntimeError:
        root = _instead_of("the cache", "this user has no home folder") / kind
    with contextlib.suppress(PermissionError):  # of a folder that one may not look into
        if (root / key).is_dir():
            return root / key
    root = _writable(root)
    ready = root / key
    with _locked(root / f"{key}.lock"):
        if ready.is_dir():
            return ready
        work = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=root))
        try:
            build(work)
            try:
                work.rename(ready)
            except OSError:
                # Where locks do not work, somebody else may have been faster; the contents agree.
                if not ready.is_dir():
                    raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return ready


@functools.cache
def _writable(root: Path) -> Path:
    """``root``, or what this process uses instead."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            return root
    except OSError as error:
        return _instead_of(str(root), str(error.strerror))


@functools.cache
def _instead_of(place: str, reason: str) -> Path:
    """A temporary folder of this process's own, of which it tells."""
    temporary = tempfile.mkdtemp(prefix="bitlane-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    text = f"{place}: {reason}; {temporary} is used until Python ends"
    hint = f"set {CACHE_VARIABLE} to a folder that can be written"
    warnings.warn(CacheWarning(f"{text}; {hint}"), stacklevel=2)
    return Path(temporary)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:
        # Without it two processes may build the same thing; the rename keeps that harmless.
        yield
        return
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
