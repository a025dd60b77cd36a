"""The library of all native files, compiled together, once for their content."""

import ctypes
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from ..compiling.cache import CACHE
from ..compiling.flags import LIBRARY
from ..compiling.notice import noticed
from ..compiling.toolchain import find_compiler

__all__ = ["ModelHandle", "native"]

_KIND = "native"
_LIBRARY = "native.so"
_FLAGS = (*LIBRARY, "-O2")
_FOLDER = Path(str(files("cppsim") / "native"))


class ModelHandle(ctypes.Structure):
    """``Model`` of model.h."""

    _fields_ = (
        ("top", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("step", ctypes.c_void_p),
        ("settle", ctypes.c_void_p),
    )


@cache
def native() -> ctypes.PyDLL:
    """The library, none of whose calls may keep Python's other threads waiting for long.

    Raises ``SimulationError`` if it cannot be compiled.
    """
    compiler = find_compiler()
    parts = [*compiler.command, compiler.version, *_FLAGS]
    sources = sorted(_FOLDER.glob("*.cc"))
    headers = sorted([*_FOLDER.glob("*.h"), *(_FOLDER.parent / "cpp").glob("*.h")])
    for path in (*headers, *sources):
        parts += [path.name, path.read_text(encoding="utf-8")]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    def fill(folder: Path) -> None:
        with noticed("cppsim: compiling its own library, once for this computer"):
            compiler.run([*_FLAGS, "-o", str(folder / _LIBRARY), *map(str, sources)])

    return ctypes.PyDLL(str(CACHE.cached(_KIND, key, fill) / _LIBRARY))
