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

__all__ = ["CACHE_VARIABLE", "CacheWarning", "cache_folder", "cached", "tool_environment"]

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
    return _caches() / "bitlane"


def tool_environment() -> dict[str, str]:
    """The environment for a tool that keeps a cache of its own beside ours.

    Where it could not, it gets a home in ours.
    """
    with contextlib.suppress(OSError, RuntimeError):
        _try_to_write(_caches())
        return dict(os.environ)
    home = str(_writable(_root("tools")))
    return {**os.environ, "HOME": home, "XDG_CACHE_HOME": home}


def cached(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder of ``key``, which ``build`` fills if it is not there yet.

    ``build`` gets an empty folder, which appears under its key only once it is complete. Processes
    that ask for the same key wait for the first one instead of building it, too.

    Where the cache cannot be written a temporary folder takes its place, as `CacheWarning` says.
    """
    root = _root(kind)
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


def _caches() -> Path:
    """Where this user's caches are. Raises ``RuntimeError`` for a user without a home folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base).absolute() if base else Path.home() / ".cache"


def _root(kind: str) -> Path:
    try:
        return cache_folder() / kind
    except RuntimeError:
        return _instead_of("the cache", "this user has no home folder") / kind


@functools.cache
def _writable(root: Path) -> Path:
    """``root``, or what this process uses instead."""
    try:
        _try_to_write(root)
    except OSError as error:
        root = _instead_of(str(root.parent), str(error.strerror)) / root.name
        root.mkdir(exist_ok=True)
    return root


def _try_to_write(folder: Path) -> None:
    """Raises ``OSError`` if ``folder`` cannot be written, or not be made."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


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
