"""Signatures and sizes of Ethernet frames between the PHY, the MAC and the parser."""

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

__all__ = [
    "GAP_BYTES",
    "LEAST_FRAME_BYTES",
    "MOST_FRAME_BYTES",
    "PREAMBLE",
    "PREAMBLE_BYTES",
    "START_OF_FRAME",
    "FrameBytes",
    "Gmii",
]

PREAMBLE = 0x55
START_OF_FRAME = 0xD5
PREAMBLE_BYTES = 7
"""Bytes of preamble before START_OF_FRAME (IEEE 802.3-2022, 3.1.1)."""

GAP_BYTES = 12
"""The least idle time between two frames that are transmitted (IEEE 802.3-2022, 4.4.2)."""

LEAST_FRAME_BYTES, MOST_FRAME_BYTES = 64, 1522
"""Bytes of a frame, from the destination address to the end of the FCS. Of the most, 4 are a tag
(IEEE 802.3-2022, 3.2.7)."""


class Gmii(wiring.Signature):
    """Signature of the bytes of a gigabit line, from the side that sends them.

    A byte is transferred in every cycle with ``valid``. A frame is one run of such cycles.

    Members
    -------
    data
        A byte.
    valid
        ``data`` is a byte of a frame.
    error
        With ``valid``: the byte is damaged. While both are 0, the lower half of ``data`` from a PHY
        is the in-band status of RGMII 2.0: link, speed (2 bits), full duplex.
    """

    def __init__(self) -> None:
        super().__init__({"data": Out(8), "valid": Out(1), "error": Out(1)})


class FrameBytes(wiring.Signature):
    """Signature of received frames without back-pressure, from the side of the MAC.

    Members
    -------
    valid, byte
        A byte of a frame, from the destination address to the end of the FCS. A frame's first byte
        follows the ``end`` of the one before by 3 cycles or more.
    end
        The frame ended with the last ``valid`` before this cycle.
    good
        With ``end``: the frame is legal, and its FCS is right. Otherwise undefined.
    """

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "byte": Out(8), "end": Out(1), "good": Out(1)})
