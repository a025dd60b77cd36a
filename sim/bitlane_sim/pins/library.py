"""Libraries of this package's C++ files: compiled once for all processes, loaded once by each."""

import ctypes
import functools
from pathlib import Path

from cppsim.compiling.library import Builder, Signatures, bind

from ..builds import OWNER

__all__ = ["BUILDER", "NUMBER", "POINTER", "SIZE", "Signatures", "load"]

POINTER, SIZE, NUMBER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64

BUILDER = Builder("pins", "its own library", ("-O2",), owner=OWNER)


def load(source: Path, signatures: Signatures) -> ctypes.CDLL:
    """Return the library of the C++ file ``source``, whose functions have these ``signatures``.

    Raises ``SimulationError`` if it cannot be compiled.
    """
    return bind(_loaded(source), signatures)


@functools.cache
def _loaded(source: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(BUILDER.from_files(source)))
