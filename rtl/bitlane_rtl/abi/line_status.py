"""The word of the control window that the network link of a board adds. Plain data only.

The engine knows nothing of it: other devices read 0 there, as everywhere without a register.
"""

from .bits import Bits

__all__ = ["GIGABIT", "LINE_STATUS", "LINE_STATUS_OFFSET", "SPEEDS"]

LINE_STATUS_OFFSET = 0x0F00
"""Offset in the control window. Writes are ignored."""

SPEEDS = (10, 100, 1000)
"""Mbit/s by SPEED."""

GIGABIT = 2
"""The only SPEED at which a board's link works."""

LINE_STATUS = {
    bits.name: bits
    for bits in (
        Bits("UP", 0, 1, "the PHY reports a link; 0 also if it reports nothing"),
        Bits("SPEED", 1, 2, "its speed, an index of SPEEDS"),
        Bits("FULL_DUPLEX", 3, 1, "both directions at once"),
        Bits("PRESENT", 4, 1, "1: the device has such a line"),
        Bits("DAMAGED", 16, 16, "damaged frames since the reset, also others', modulo 2**16"),
    )
}
"""The fields by name. The first three are the in-band status of RGMII 2.0, as it came last."""
