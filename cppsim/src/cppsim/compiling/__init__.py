"""Compile C++ into libraries in memory, and cache the libraries."""

from .cache import CACHE, Cache, CacheWarning, source_digest
from .entries import WORK, remove
from .library import HEADERS, Builder, Signatures, bind, builder, content_key, load, provide
from .toolchain import Compiler, bare, find_compiler, hasty, run_program, selecting, straight

__all__ = [
    "CACHE",
    "HEADERS",
    "WORK",
    "Builder",
    "Cache",
    "CacheWarning",
    "Compiler",
    "Signatures",
    "bare",
    "bind",
    "builder",
    "content_key",
    "find_compiler",
    "hasty",
    "load",
    "provide",
    "remove",
    "run_program",
    "selecting",
    "source_digest",
    "straight",
]
