"""Amaranth's simulator, compiled: `Simulator`, or ``amaranth.sim``'s with ``engine=cppsim.Engine``.

The design becomes C++, a C++ compiler a library of it, once for its content. Knows Amaranth, and
nothing of what is simulated.
"""

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .engine import Engine, FallbackWarning
    from .simulator import Simulator

__all__ = ["Engine", "FallbackWarning", "Simulator", "__version__"]


def __getattr__(name: str) -> Any:
    # Importing Amaranth takes time, which whoever uses the compiler and the cache alone need not.
    if name in __all__:
        from . import engine, simulator

        return getattr(simulator if name == "Simulator" else engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
