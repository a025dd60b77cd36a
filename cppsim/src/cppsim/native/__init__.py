"""C++ that is the same for all designs, compiled once: it advances instances, and reads them.

Each file has one responsibility and a few ``extern "C"`` functions; ``instance.h`` declares an
instance for them. The Python module beside a file calls its functions.
"""

import ctypes
from functools import cache
from importlib.resources import files
from pathlib import Path

from ..compiling import HEADERS, Builder

_FOLDER = Path(str(files("cppsim") / "native"))

BUILDER = Builder("native", "its own library", ("-O2",), headers=(_FOLDER, HEADERS))


class InstanceHandle(ctypes.Structure):
    """``Instance`` of instance.h."""

    _fields_ = (
        ("top", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("step", ctypes.c_void_p),
        ("settle", ctypes.c_void_p),
        ("edge", ctypes.c_void_p),
        ("levels", ctypes.c_void_p),
    )


@cache
def native() -> ctypes.PyDLL:
    """Return the library of clocks and probes.

    Its calls hold the interpreter's lock: they must be short. Raises ``SimulationError`` if it
    cannot be compiled.
    """
    sources = (_FOLDER / f"{name}.cc" for name in ("clocks", "deltas", "interpreter", "probe"))
    return ctypes.PyDLL(str(BUILDER.from_files(*sources)))
