"""Find a C++ compiler, compile with it, and cache what was built, each for the package ``owner``.

`Builder` compiles C++ into a library once for its content, and `bind` gives the functions in it
their signatures. `Cache` stores any other folder by its key, which `content_key` and
`source_digest` make. `run_program` runs another tool. Needs no Amaranth.
"""

from .compiling import (
    Builder,
    Cache,
    CacheWarning,
    Compiler,
    Signatures,
    bind,
    content_key,
    find_compiler,
    remove,
    run_program,
    source_digest,
)

__all__ = [
    "Builder",
    "Cache",
    "CacheWarning",
    "Compiler",
    "Signatures",
    "bind",
    "content_key",
    "find_compiler",
    "remove",
    "run_program",
    "source_digest",
]
