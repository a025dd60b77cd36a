"""A controller for single-data-rate SDRAM. `memory.SdramMemory` is its top component.

Only plain data is imported here: the device ``numpy`` takes `sdram_part` where Amaranth is not
installed.
"""

from ...sdram_part import AS4C16M16SA_7, EM638325_6H, W9816G6JH_6_PAIR, SdramPart, SdramTiming

__all__ = [
    "AS4C16M16SA_7",
    "EM638325_6H",
    "W9816G6JH_6_PAIR",
    "SdramPart",
    "SdramTiming",
]
