"""The core as a module of LiteX: ``add_bitlane(soc)``, and the class `Bitlane`.

LiteX, which the extra `litex` brings, is imported when one of the two is.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core import Bitlane
    from .soc import add_bitlane

__all__ = ["Bitlane", "add_bitlane"]

_MODULES = {"Bitlane": "core", "add_bitlane": "soc"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
