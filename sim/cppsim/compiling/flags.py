"""What a compiler is told of written C++, besides how much to optimize."""

from .toolchain import Compiler

__all__ = ["selecting"]

_BRANCH_COST = 200
"""What GCC may spend to do without a branch, in its own unit, a quarter of an instruction."""


def selecting(compiler: Compiler) -> tuple[str, ...]:
    """Flags that make ``condition ? this : that`` a selection instead of a branch.

    Both sides are values that are there already, and conditions in a circuit follow its data: a
    processor predicts them badly. The full system at 64 bits does 1.18 times as many cycles a
    second, with stalls 1.10 times. Where that is worth a branch, the writer says ``if``.
    """
    if "Free Software Foundation" not in compiler.version:
        return ()
    kinds = ("predictable", "unpredictable")
    return tuple(f"--param=max-rtl-if-conversion-{kind}-cost={_BRANCH_COST}" for kind in kinds)
