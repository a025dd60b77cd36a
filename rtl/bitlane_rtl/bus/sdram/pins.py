"""The pins of an SDRAM chip, and the encoding of its commands."""

from enum import IntFlag

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...sdram_part import SdramPart

__all__ = ["ALL_BANKS", "ChipCommand", "SdramPins"]

ALL_BANKS = 10
"""The address bit that makes PRECHARGE close all banks (A10)."""


class ChipCommand(IntFlag):
    """Commands, encoded as the sum of the active pins: RAS (1), CAS (2) and WE (4)."""

    NONE = 0
    ACTIVATE = 1
    READ = 2
    REFRESH = 3
    STOP = 4
    PRECHARGE = 5
    WRITE = 6
    SET_MODE = 7


class SdramPins(wiring.Signature):
    """Signature of a chip's pins, seen from the controller. CKE and CS are always active.

    The chip's clock is half a cycle behind the controller's. The chip samples its inputs half a
    cycle after the controller drives them, and the controller samples the data lines half a cycle
    after the chip's edge.

    Members
    -------
    ras_n, cas_n, we_n
        Active low, see `ChipCommand`. They are levels, so that no inverter is between a register
        and its pin.
    bank
        The bank's number, BA.
    address
        The address of a row or a column, A.
    mask
        DQM: 1 for bytes that are not written, or not read two edges later. Exists only if the part
        has ``masks``.
    o, i
        The data lines.
    oe
        The controller drives the data lines.
    """

    def __init__(self, part: SdramPart) -> None:
        super().__init__(
            {
                "ras_n": Out(1),
                "cas_n": Out(1),
                "we_n": Out(1),
                "bank": Out(part.bank_bits),
                "address": Out(part.row_bits),
                **({"mask": Out(part.width // 8)} if part.masks else {}),
                "o": Out(part.width),
                "oe": Out(1),
                "i": In(part.width),
            }
        )
