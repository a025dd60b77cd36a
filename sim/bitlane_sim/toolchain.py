"""Find the C++ compiler."""

from cppsim.compiling import toolchain
from cppsim.compiling.toolchain import Compiler

__all__ = ["find_compiler"]


def find_compiler() -> Compiler:
    """Return the compiler that ``BITLANE_CXX`` names, else the first that is found.

    Raises ``SimulationError`` if none runs, which says what to install.
    """
    return toolchain.find_compiler("bitlane")
