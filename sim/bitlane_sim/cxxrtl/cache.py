"""A folder of built things by content key, safe for many processes at once."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["CACHE_VARIABLE", "cache_folder", "cached"]

CACHE_VARIABLE = "BITLANE_CACHE"
"""Environment variable that names the cache folder."""


def cache_folder() -> Path:
    """``BITLANE_CACHE``, else ``bitlane`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".cache") / "bitlane"


def cached(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder of ``key``, which ``build`` fills if it is not there yet.

    ``build`` gets an empty folder, which appears under its key only once it is complete. Processes
    that ask for the same key wait for the first one instead of building it, too.
    """
    root = cache_folder() / kind
    ready = root / key
    if ready.is_dir():
        return ready
    root.mkdir(parents=True, exist_ok=True)
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
