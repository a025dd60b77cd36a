"""Circuits of `cppsim.Model`: how one is prepared and compiled, and what all models can do.

`Circuit` prepares a component; a subclass of `Elaborated` is a circuit from elsewhere, as from a
cache. `build` compiles either, for ``build_with`` of a model. `AnyModel` is the interface of
compiled and reference models, whose prepared programs are `Prepared`. `execute` runs a program on
a `Testbench` in a simulator. Amaranth is imported with the names that need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .model.build import build
from .model.interface import AnyModel, Elaborated, Prepared
from .netlist import PlainDesign

if TYPE_CHECKING:
    from .model.circuit import Circuit
    from .model.reference import Testbench, execute, value_at

_MODULES = {
    "Circuit": "circuit",
    "Testbench": "reference",
    "execute": "reference",
    "value_at": "reference",
}

__all__ = [
    "AnyModel",
    "Circuit",
    "Elaborated",
    "PlainDesign",
    "Prepared",
    "Testbench",
    "build",
    "execute",
    "value_at",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f".model.{_MODULES[name]}", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
