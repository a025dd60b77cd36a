"""A controller for single-data-rate SDRAM. `SdramMemory` is its top component."""

from ...sdram_part import AS4C16M16SA_7, EM638325_6H, W9816G6JH_6_PAIR, SdramPart, SdramTiming
from .memory import SdramMemory
from .pins import ALL_BANKS, ChipCommand, SdramPins
from .refresher import Refresher

__all__ = [
    "ALL_BANKS",
    "AS4C16M16SA_7",
    "EM638325_6H",
    "W9816G6JH_6_PAIR",
    "ChipCommand",
    "Refresher",
    "SdramMemory",
    "SdramPart",
    "SdramPins",
    "SdramTiming",
]
