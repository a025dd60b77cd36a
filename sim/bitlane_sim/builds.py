"""bitlane's cache, and its choice of a C++ compiler.

What is built once is stored in the folder ``BITLANE_CACHE``, else in ``~/.cache/bitlane``.
"""

from functools import partial

import cppsim.build
from cppsim.build import Cache, Compiler
from cppsim.circuits import build

OWNER = "bitlane"
"""The name under which cppsim finds bitlane's environment variables and cache."""

CACHE = Cache(OWNER)

build_circuit = partial(build, owner=OWNER)
"""Builds the circuit of a `Model` with bitlane's compiler and cache, for ``build_with``."""


def find_compiler() -> Compiler:
    """Return the compiler that ``BITLANE_CXX`` names, else the first that is found.

    Raises ``SimulationError`` if none runs, which says what to install.
    """
    return cppsim.build.find_compiler(OWNER)
