"""The core as a module of LiteX: ``add_bitlane(soc)``. Importing it needs the extra `litex`."""

from .core import Bitlane
from .soc import add_bitlane

__all__ = ["Bitlane", "add_bitlane"]
