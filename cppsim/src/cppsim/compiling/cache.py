"""A cache of built folders by content key, safe for many processes at once.

`source_digest` is the part of a key that stands for source files.
"""

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..errors import SimulationError, warn_user
from .entries import WORK, Entry, entries, is_whole, remove, seal, shrink, sweep

_ROOM = 1 << 18
"""Bytes that are written to test a folder: fewer than most libraries have."""

_LIMIT = 2048
"""MiB of a cache whose limit no variable names."""


class CacheWarning(UserWarning):
    """The cache cannot be written and is replaced until Python ends, or an entry was damaged."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache of the package ``owner``, which names its folder and its environment variable."""

    owner: str

    @property
    def variable(self) -> str:
        """The environment variable that names the folder."""
        return f"{self.owner.upper()}_CACHE"

    def folder(self) -> Path:
        """Return the folder in `variable`, else ``owner`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

        Raises ``RuntimeError`` if neither variable is set and the user has no home folder.
        """
        chosen = os.environ.get(self.variable)
        if chosen:
            return Path(chosen).absolute()
        return _caches() / self.owner

    def limit(self) -> int:
        """Return the bytes that the cache may hold: ``…_CACHE_LIMIT`` in MiB, else 2 GiB.

        Raises ``SimulationError`` if the variable is not a whole number.
        """
        variable = f"{self.variable}_LIMIT"
        chosen = os.environ.get(variable) or str(_LIMIT)
        if not chosen.isdecimal():
            raise SimulationError(f"{variable}: {chosen!r} is not a number of MiB; expected 2048")
        return int(chosen) << 20

    def entries(self) -> list[Entry]:
        """Return the entries, those used last at the end.

        Raises ``SimulationError`` if there is something else in place of the folder.
        """
        folder = self.folder()
        if folder.exists() and not folder.is_dir():
            raise SimulationError(f"{self.variable}: {folder} is a file; expected a folder")
        return entries(folder)

    def clear(self) -> tuple[int, int]:
        """Remove all entries; return their number and their bytes.

        Raises ``OSError``, and as `entries`.
        """
        found = self.entries()
        for entry in found:
            remove(entry.folder)
        sweep(self.folder())
        return len(found), sum(entry.size for entry in found)

    def cached(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """Return the folder of ``key``; ``build`` fills it if it does not exist or is damaged.

        ``build`` gets an empty folder, which appears under its key only once it is complete.
        Other processes that need the same key wait for the first one.

        If the cache cannot be written, a temporary folder replaces it, with a `CacheWarning`.
        A damaged entry is built anew, with a `CacheWarning`.
        """
        known = self.known(kind, key)
        if known is not None:
            return known
        limit = self.limit()
        root = _writable(self._root(kind), self.variable)
        root.mkdir(parents=True, exist_ok=True)  # it may have been removed since it was tested
        ready = root / key
        with _locked(root / f"{key}.lock") as alone:
            if _usable(ready):
                return ready
            if ready.is_dir():
                warn_user(CacheWarning(f"{ready}: damaged; it is built anew"), self.owner)
                remove(ready)
            if alone:
                # Whoever was here before has been killed.
                for left in root.glob(f"{key}{WORK}*"):
                    shutil.rmtree(left, ignore_errors=True)
            _fill(ready, build)
        _shrink_once(root.parent, limit)
        return ready

    def known(self, kind: str, key: str) -> Path | None:
        """Return the folder of ``key``, None if it does not exist or is damaged."""
        root = self._root(kind)
        for each in (root, _replaced.get(root)):
            with contextlib.suppress(PermissionError):  # of a folder that one may not look into
                if each is not None and _usable(each / key):
                    return each / key
        return None

    def tool_environment(self) -> dict[str, str]:
        """Return the environment for a tool with a cache of its own in the user's cache folder.

        If that folder cannot be written, the tool gets a home folder in this cache.
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
"""The cache of compiled designs."""


def _caches() -> Path:
    """Return the user's cache folder. Raises ``RuntimeError`` if there is no home folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base).absolute() if base else Path.home() / ".cache"


def _usable(entry: Path) -> bool:
    """Return whether ``entry`` exists and is whole; note that it has been used."""
    if not (entry.is_dir() and is_whole(entry)):
        return False
    with contextlib.suppress(OSError):  # of a cache that cannot be written
        os.utime(entry)
    return True


def _fill(ready: Path, build: Callable[[Path], None]) -> None:
    """Let ``build`` fill a folder, which then becomes ``ready``."""
    work = Path(tempfile.mkdtemp(prefix=f"{ready.name}{WORK}", dir=ready.parent))
    try:
        build(work)
        seal(work)
        try:
            work.rename(ready)
        except OSError:
            # Where locks do not work, somebody else may have been faster; the contents agree.
            if not ready.is_dir():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


@functools.cache
def _shrink_once(root: Path, limit: int) -> None:
    """Remove entries beyond ``limit``, once in a process: to look at 2,600 takes 0.16 s."""
    with contextlib.suppress(OSError):
        shrink(root, limit)


_replaced: dict[Path, Path] = {}
"""The temporary folder that replaces a folder in this process."""


@functools.cache
def _writable(root: Path, variable: str) -> Path:
    """Return ``root``, or the temporary folder that replaces it in this process."""
    try:
        _try_to_write(root)
    except OSError as error:
        other = _instead_of(str(root.parent), str(error.strerror), variable) / root.name
        other.mkdir(exist_ok=True)
        _replaced[root] = other
        return other
    return root


def _try_to_write(folder: Path) -> None:
    """Raise ``OSError`` if ``folder`` cannot be created or written."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_ROOM))


@functools.cache
def _instead_of(folder: str, reason: str, variable: str) -> Path:
    """Create a temporary folder for this process; warn about it."""
    owner, _, _ = variable.lower().partition("_")
    temporary = tempfile.mkdtemp(prefix=f"{owner}-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    text = f"{folder}: {reason}; {temporary} is used until Python ends"
    hint = f"set {variable} to a folder that can be written"
    warn_user(CacheWarning(f"{text}; {hint}"), owner)
    return Path(temporary)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Lock ``path``, which exists only meanwhile; yield whether that excludes other processes."""
    try:
        import fcntl
    except ImportError:
        # Without it two processes may build the same thing; the rename keeps that harmless.
        yield False
        return
    while True:
        with path.open("w", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                alone = True
            except OSError:  # a network's file system without locks
                alone = False
            if alone and not _is_still(path, file.fileno()):
                continue  # whoever had the lock has removed the file
            try:
                yield alone
            finally:
                path.unlink(missing_ok=True)
            return


def _is_still(path: Path, file: int) -> bool:
    """Return whether ``path`` is the open ``file``."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


_SUFFIXES = (".py", ".h")


def source_digest(*names: str) -> str:
    """SHA-256 of all Python and C++ of packages and modules, as it is on disk now.

    Raises ``ModuleNotFoundError`` for an unknown name, ``OSError`` if a file disappears or a
    package is installed without its sources.
    """
    total = hashlib.sha256()
    for name in names:
        files = sorted(_files(name))
        if not files:
            raise FileNotFoundError(
                f"package {name} has no source files; expected it installed in a folder, with them"
            )
        for relative, path in files:
            with open(path, "rb") as file:  # noqa: PTH123 - see `_files`
                content = file.read()
            total.update(f"{name} {relative} {len(content)}\n".encode())
            total.update(content)
    return total.hexdigest()


def _files(name: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a package or module: the path within it, and the whole path.

    Paths are text: as objects, those of a system's sources take 10 ms.
    """
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    if spec.submodule_search_locations is None:
        yield "", str(spec.origin)
        return
    for root in map(str, spec.submodule_search_locations):
        for folder, _, files in os.walk(root, followlinks=True):
            for file in files:
                # Editors keep locks and copies in files that begin with a dot.
                if file.endswith(_SUFFIXES) and not file.startswith("."):
                    path = f"{folder}{os.sep}{file}"
                    yield path[len(root) + 1 :], path
