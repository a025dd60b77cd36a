"""Amaranth's simulator, compiled: `Simulator`, or ``amaranth.sim``'s with ``engine=cppsim.Engine``.

A design is translated to C++ and compiled to a library, which is cached by content. The package
depends on Amaranth, and on none of the designs that it simulates.

The installed package has the pages beside this file: README.md, and docs/differs.md for the results
that differ from those of Amaranth's simulator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .batch.batch import Batch
    from .batch.description import BrokenOff
    from .batch.record import Recording
    from .batch.runner import BatchWarning
    from .checking import CheckedEngine, Difference, check
    from .coverage import Coverage, CoveragePoint
    from .engine import Engine
    from .errors import BatchError, FallbackWarning, PortError
    from .model.model import Model
    from .model.program import Program
    from .model.reference import ReferenceModel
    from .model.storage import StorageAccess, StoragePort
    from .simulator import Simulator
    from .stand_ins import register_cell

__version__ = "0.1.0"
"""The build reads this line without importing the package."""

_MODULES = {
    "Batch": "batch.batch",
    "BatchError": "errors",
    "BatchWarning": "batch.runner",
    "BrokenOff": "batch.description",
    "CheckedEngine": "checking",
    "Coverage": "coverage",
    "CoveragePoint": "coverage",
    "Difference": "checking",
    "Engine": "engine",
    "FallbackWarning": "errors",
    "Model": "model.model",
    "PortError": "errors",
    "Program": "model.program",
    "Recording": "batch.record",
    "ReferenceModel": "model.reference",
    "Simulator": "simulator",
    "StorageAccess": "model.storage",
    "StoragePort": "model.storage",
    "check": "checking",
    "register_cell": "stand_ins",
}

__all__ = [
    "Batch",
    "BatchError",
    "BatchWarning",
    "BrokenOff",
    "CheckedEngine",
    "Coverage",
    "CoveragePoint",
    "Difference",
    "Engine",
    "FallbackWarning",
    "Model",
    "PortError",
    "Program",
    "Recording",
    "ReferenceModel",
    "Simulator",
    "StorageAccess",
    "StoragePort",
    "__version__",
    "check",
    "register_cell",
]


def __getattr__(name: str) -> Any:
    # Users of the compiler and the cache alone need not wait for the import of Amaranth.
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
