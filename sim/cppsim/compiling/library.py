"""Compile a written simulation, or find it in the cache, and load it."""

import ctypes
import hashlib
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from .cache import CACHE
from .flags import LIBRARY, selecting
from .notice import noticed
from .toolchain import Compiler, find_compiler

__all__ = ["load", "prepare", "provide"]

_KIND = "cppsim"
_LIBRARY = "model.so"
_FLAGS = (*LIBRARY, "-O1")
_HEADERS = Path(str(files("cppsim") / "cpp"))


@cache
def _compiler() -> Compiler:
    return find_compiler()


@cache
def _fixed() -> bytes:
    """A digest of all that goes into a library but the source itself."""
    compiler = _compiler()
    parts = [*compiler.command, compiler.version, *_FLAGS, *selecting(compiler)]
    parts += [path.read_text(encoding="utf-8") for path in sorted(_HEADERS.glob("*.h"))]
    return hashlib.sha256("\0".join(parts).encode()).digest()


def prepare() -> None:
    """Find a compiler, and a cache that can be written. Raises ``SimulationError``."""
    _fixed()
    CACHE.prepare(_KIND)


def load(source: str) -> Any:
    """The library of ``source``. Raises ``SimulationError`` if it cannot be compiled."""
    return _loaded(provide(source))


def provide(source: str, flags: tuple[str, ...] = ()) -> Path:
    """Return the path of the library of ``source``, compiled with ``flags`` besides the usual ones.

    Raises ``SimulationError`` as `load`.
    """
    own = "\0".join((*flags, source))
    key = hashlib.sha256(_fixed() + own.encode()).hexdigest()[:32]

    def fill(folder: Path) -> None:
        text = folder / "model.cc"
        text.write_text(source, encoding="utf-8")
        compiler, paths = _compiler(), (f"-I{_HEADERS}", "-o", str(folder / _LIBRARY), str(text))
        with noticed("cppsim: compiling a design, once for this computer"):
            compiler.run([*_FLAGS, *selecting(compiler), *flags, *paths])
        text.unlink()

    return CACHE.cached(_KIND, key, fill) / _LIBRARY


@lru_cache(maxsize=256)
def _loaded(path: Path) -> Any:
    # Calls are short, and many: letting other threads run meanwhile would take longer than they do.
    library = ctypes.PyDLL(str(path))
    address, number = ctypes.c_void_p, ctypes.c_size_t
    for name, result, arguments in (
        ("create", address, ()),
        ("destroy", None, (address,)),
        ("reset", None, (address,)),
        ("words", address, (address,)),
        ("memory", address, (address, number)),
        ("step", ctypes.c_int, (address,)),
        ("settle", None, (address,)),
        ("told", number, (address, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))),
    ):
        function = getattr(library, f"simulation_{name}")
        function.restype, function.argtypes = result, arguments
    return library
