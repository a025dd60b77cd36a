"""The simulated device: the `sim:` link, its clock, its memory, and the elaborated system.

Each name is imported when it is first used: an elaboration loads this package in a process of its
own, and executes one module of it as a program.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .elaboration import elaborated_system
    from .gtkwave import write_save_file
    from .link import SimulatorLink, open_link
    from .simulator import Report, Simulator, choose_evaluator, load_evaluator

__all__ = [
    "Report",
    "Simulator",
    "SimulatorLink",
    "choose_evaluator",
    "elaborated_system",
    "load_evaluator",
    "open_link",
    "write_save_file",
]

_MODULES = {
    "Report": "simulator",
    "Simulator": "simulator",
    "SimulatorLink": "link",
    "choose_evaluator": "simulator",
    "elaborated_system": "elaboration",
    "load_evaluator": "simulator",
    "open_link": "link",
    "write_save_file": "gtkwave",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
