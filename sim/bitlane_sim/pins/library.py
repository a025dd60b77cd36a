"""Libraries of this package's C++ files: compiled once for all processes, loaded once by each."""

import ctypes
import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from cppsim.compiling.flags import LIBRARY

from ..builds import CACHE, find_compiler

__all__ = ["NUMBER", "POINTER", "SIZE", "Signatures", "load"]

POINTER, SIZE, NUMBER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64

Signatures = Mapping[str, tuple[object, Sequence[object]]]
"""Types of the result and of the arguments, by the function's name."""

_FLAGS = (*LIBRARY, "-O2")


def load(source: Path, signatures: Signatures) -> ctypes.CDLL:
    """Return the library of the C++ file ``source``, whose functions have these ``signatures``.

    Raises ``SimulationError`` if it cannot be compiled.
    """
    calls = _loaded(source)
    for name, (result, arguments) in signatures.items():
        call = getattr(calls, name)
        call.restype, call.argtypes = result, arguments
    return calls


@functools.cache
def _loaded(source: Path) -> ctypes.CDLL:
    compiler = find_compiler()
    parts = (source.read_text(encoding="utf-8"), *compiler.command, compiler.version, *_FLAGS)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    name = f"{source.stem}.so"

    def build(folder: Path) -> None:
        compiler.run([*_FLAGS, "-o", str(folder / name), str(source)])

    return ctypes.CDLL(str(CACHE.cached("pins", key, build) / name))
