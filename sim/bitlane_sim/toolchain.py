"""Find the C++ compiler."""

from cppsim.compiling import toolchain
from cppsim.compiling.toolchain import Compiler

__all__ = ["find_compiler"]

_COMPILER_VARIABLE = "BITLANE_CXX"


def find_compiler() -> Compiler:
    """What ``BITLANE_CXX`` says, else the first compiler there is; raises ``SimulationError``."""
    return toolchain.find_compiler(_COMPILER_VARIABLE)
