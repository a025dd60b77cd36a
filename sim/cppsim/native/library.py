"""The library of all native files, compiled together, once for their content."""

import ctypes
from functools import cache
from importlib.resources import files
from pathlib import Path

from ..compiling.library import HEADERS, Builder

_FOLDER = Path(str(files("cppsim") / "native"))

BUILDER = Builder("native", "its own library", ("-O2",), headers=(_FOLDER, HEADERS))


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
    """Return the library. Its calls hold the interpreter's lock, so they must be short.

    Raises ``SimulationError`` if it cannot be compiled.
    """
    return ctypes.PyDLL(str(BUILDER.from_files(*sorted(_FOLDER.glob("*.cc")))))
