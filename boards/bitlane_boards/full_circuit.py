"""The configuration and the reasons of boards that have room for the full circuit."""

from collections.abc import Mapping
from dataclasses import replace

from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full
from bitlane_rtl.sdram_part import SdramPart

__all__ = ["WHY_FULL", "full_on_block_ram", "full_on_sdram"]

WHY_FULL: Mapping[str, str] = {
    "data width": "64 bits: the widest lane in one beat",
    "operators": "all of them, with all runs and loops: there is room",
}
"""The reasons for the configuration `full`, for `Board.why`."""


def full_on_sdram(part: SdramPart) -> Configuration:
    """Return `full` with all the memory of ``part``."""
    bits = part.size.bit_length() - 1
    return replace(full(), address_width=bits, memory_bytes=part.size, rows=part.rows)


def full_on_block_ram(bits: int) -> Configuration:
    """Return `full` with ``2**bits`` bytes of memory; a run may have all of them."""
    return replace(
        full(), address_width=bits, memory_bytes=1 << bits, length_bits=bits + 1, count_bits=bits
    )
