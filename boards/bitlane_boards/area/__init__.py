"""`bitlane area`: LUTs and clock of the circuit, placed and routed out of context.

Each name is imported when it is first used: the words of the subcommand need no Amaranth.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .chips import CHIPS
    from .copier import Copier, Descriptor
    from .designs import CONFIGURED, DESIGNS, ON_REQUEST, Design
    from .measure import AreaRow, measure_area
    from .place import Arc, Placer, SeedResult, with_inner
    from .wrapper import OutOfContext

__all__ = [
    "CHIPS",
    "CONFIGURED",
    "DESIGNS",
    "ON_REQUEST",
    "Arc",
    "AreaRow",
    "Copier",
    "Descriptor",
    "Design",
    "OutOfContext",
    "Placer",
    "SeedResult",
    "measure_area",
    "with_inner",
]

_MODULES = {
    "Arc": "place",
    "AreaRow": "measure",
    "CHIPS": "chips",
    "CONFIGURED": "designs",
    "Copier": "copier",
    "DESIGNS": "designs",
    "Descriptor": "copier",
    "Design": "designs",
    "ON_REQUEST": "designs",
    "OutOfContext": "wrapper",
    "Placer": "place",
    "SeedResult": "place",
    "measure_area": "measure",
    "with_inner": "place",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
