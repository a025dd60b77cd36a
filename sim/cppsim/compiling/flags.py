"""Flags with which written C++ becomes a shared library, by the kind of the compiler.

No other place gives a compiler a flag that only some compilers take.
"""

import sys

from .toolchain import Compiler

__all__ = ["LIBRARY", "bare", "hasty", "selecting", "straight"]

LIBRARY = ("-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-w")
"""Flags of every library, which GCC, Clang and ziglang take."""

_BRANCH_COST = 200
"""GCC's budget to avoid a branch, in quarters of an instruction."""


def selecting(compiler: Compiler) -> tuple[str, ...]:
    """Return flags that make ``condition ? this : that`` a selection instead of a branch.

    Both sides are values that exist already, and conditions in a circuit follow its data: a
    processor predicts them badly. The full system at 64 bits does 1.18 times as many cycles a
    second, with stalls 1.10 times. Where that is worth a branch, the writer says ``if``.
    """
    if not compiler.is_gcc:
        return ()
    kinds = ("predictable", "unpredictable")
    return tuple(f"--param=max-rtl-if-conversion-{kind}-cost={_BRANCH_COST}" for kind in kinds)


def bare(compiler: Compiler) -> tuple[str, ...]:
    """Return flags that link no library but the compiler's own, behind the sources.

    A simulation calls a few functions of C, which Python has loaded. To look into the libraries of
    C++ takes 18 of 58 ms for a FIFO. Other systems resolve such names only if told to.
    """
    return ("-nostdlib", "-lgcc") if compiler.is_gcc and sys.platform == "linux" else ()


def hasty(compiler: Compiler) -> tuple[str, ...]:
    """Return flags that leave out what takes GCC longest in a large function at ``-Og``.

    The source computes nothing twice. Looking for it takes 4 of 12 s for 5,000 registers; without
    it the circuit does 0.97 times as many cycles a second.
    """
    return ("-fno-tree-fre",) if compiler.is_gcc else ()


def straight(compiler: Compiler) -> tuple[str, ...]:
    """Return flags that leave out optimizations of GCC that do not pay for a written circuit.

    Stores of neighbouring words joined into vectors cost more than they save. The source computes
    nothing twice, and looking for it takes a sixth of the time. Clang's vectors do pay: without
    them ziglang's circuit does 0.9 times as many cycles a second.
    """
    if not compiler.is_gcc:
        return ()
    return ("-fno-tree-vectorize", "-fno-tree-pre", "-fno-gcse")
