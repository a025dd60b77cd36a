"""Amaranth's simulator, compiled: `Simulator`, or ``amaranth.sim``'s with ``engine=cppsim.Engine``.

The design becomes C++, a C++ compiler a library of it, once for its content. Knows Amaranth, and
nothing of what is simulated.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .batch.batch import Batch
    from .batch.description import BrokenOff
    from .batch.record import Recording
    from .batch.runner import BatchWarning
    from .checking.checked import CheckedEngine, Difference, check
    from .engine import Engine, FallbackWarning
    from .errors import BatchError
    from .model.model import Model
    from .model.program import Program
    from .model.reference import ReferenceModel
    from .netlist.storage import StorageAccess, StoragePort
    from .simulator import Simulator

pytest_plugins = ("cppsim.pytest_plugin",)
"""What ``pytest -p cppsim`` loads."""

_MODULES = {
    "Batch": "batch.batch",
    "BatchError": "errors",
    "BatchWarning": "batch.runner",
    "BrokenOff": "batch.description",
    "CheckedEngine": "checking.checked",
    "Difference": "checking.checked",
    "Engine": "engine",
    "FallbackWarning": "engine",
    "Model": "model.model",
    "Program": "model.program",
    "Recording": "batch.record",
    "ReferenceModel": "model.reference",
    "Simulator": "simulator",
    "StorageAccess": "netlist.storage",
    "StoragePort": "netlist.storage",
    "check": "checking.checked",
}

__all__ = [
    "Batch",
    "BatchError",
    "BatchWarning",
    "BrokenOff",
    "CheckedEngine",
    "Difference",
    "Engine",
    "FallbackWarning",
    "Model",
    "Program",
    "Recording",
    "ReferenceModel",
    "Simulator",
    "StorageAccess",
    "StoragePort",
    "__version__",
    "check",
]


def __getattr__(name: str) -> Any:
    # Importing Amaranth takes time, which whoever uses the compiler and the cache alone need not.
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
