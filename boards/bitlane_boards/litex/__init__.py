"""The core as a module of LiteX: ``add_bitlane(soc)``, and the class `Bitlane`.

LiteX, which the extra `litex` brings, is imported when a name that needs it is.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .core import Bitlane
    from .link import LitexLink
    from .simulated import verilate
    from .soc import add_bitlane
    from .targets import build_target

__all__ = ["Bitlane", "LitexLink", "add_bitlane", "build_target", "verilate"]

_MODULES = {
    "Bitlane": "core",
    "LitexLink": "link",
    "add_bitlane": "soc",
    "build_target": "targets",
    "verilate": "simulated",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
