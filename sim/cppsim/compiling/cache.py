"""A folder of built things by content key, safe for many processes at once."""

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CACHE", "Cache", "CacheWarning"]

_ROOM = 1 << 18
"""Bytes that a folder has to take before it is used: less than most of what is built."""


class CacheWarning(UserWarning):
    """The cache's folder cannot be used; what is built is forgotten when Python ends."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache of ``owner``, by whose name its folder and its environment variable go."""

    owner: str

    @property
    def variable(self) -> str:
        """The environment variable that names the folder."""
        return f"{self.owner.upper()}_CACHE"

    def folder(self) -> Path:
        """What `variable` says, else ``owner`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

        Raises ``RuntimeError`` where none is set for a user who has no home folder.
        """
        chosen = os.environ.get(self.variable)
        if chosen:
            return Path(chosen).absolute()
        return _caches() / self.owner

    def cached(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """The folder of ``key``, which ``build`` fills if it is not there yet.

        ``build`` gets an empty folder, which appears under its key only once it is complete.
        Processes that ask for the same key wait for the first one instead of building it, too.

        Where the cache cannot be written a temporary folder takes its place, as `CacheWarning`
        says.
        """
        root = self._root(kind)
        with contextlib.suppress(PermissionError):  # of a folder that one may not look into
            if (root / key).is_dir():
                return root / key
        root = _writable(root, self.variable)
        ready = root / key
        with _locked(root / f"{key}.lock") as alone:
            if ready.is_dir():
                return ready
            if alone:
                # Whoever was here before has been killed.
                for left in root.glob(f"{key}.work-*"):
                    shutil.rmtree(left, ignore_errors=True)
            work = Path(tempfile.mkdtemp(prefix=f"{key}.work-", dir=root))
            try:
                build(work)
                try:
                    work.rename(ready)
                except OSError:
                    # Where locks do not work, somebody else may have been faster; the contents
                    # agree.
                    if not ready.is_dir():
                        raise
            finally:
                shutil.rmtree(work, ignore_errors=True)
        return ready

    def prepare(self, kind: str) -> None:
        """Find now whether the cache of ``kind`` can be written, for this process and its forks."""
        _writable(self._root(kind), self.variable)

    def tool_environment(self) -> dict[str, str]:
        """The environment for a tool that keeps a cache of its own beside ours.

        Where it could not, it gets a home in ours.
        """
        with contextlib.suppress(OSError, RuntimeError):
            _try_to_write(_caches())
            return dict(os.environ)
        home = str(_writable(self._root("tools"), self.variable))
        return {**os.environ, "HOME": home, "XDG_CACHE_HOME": home}

    def _root(self, kind: str) -> Path:
        try:
            return self.folder() / kind
        except RuntimeError:
            reason = "this user has no home folder"
            return _instead_of("the cache", reason, self.variable) / kind


CACHE = Cache("cppsim")
"""Where compiled designs are kept."""


def _caches() -> Path:
    """Where this user's caches are. Raises ``RuntimeError`` for a user without a home folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base).absolute() if base else Path.home() / ".cache"


@functools.cache
def _writable(root: Path, variable: str) -> Path:
    """``root``, or what this process uses instead."""
    try:
        _try_to_write(root)
    except OSError as error:
        root = _instead_of(str(root.parent), str(error.strerror), variable) / root.name
        root.mkdir(exist_ok=True)
    return root


def _try_to_write(folder: Path) -> None:
    """Raises ``OSError`` if ``folder`` cannot be written, or not be made."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_ROOM))


@functools.cache
def _instead_of(place: str, reason: str, variable: str) -> Path:
    """A temporary folder of this process's own, of which it tells."""
    owner, _, _ = variable.lower().partition("_")
    temporary = tempfile.mkdtemp(prefix=f"{owner}-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    text = f"{place}: {reason}; {temporary} is used until Python ends"
    hint = f"set {variable} to a folder that can be written"
    warnings.warn(CacheWarning(f"{text}; {hint}"), stacklevel=2)
    return Path(temporary)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether nobody else is in here."""
    try:
        import fcntl
    except ImportError:
        # Without it two processes may build the same thing; the rename keeps that harmless.
        yield False
        return
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield True
