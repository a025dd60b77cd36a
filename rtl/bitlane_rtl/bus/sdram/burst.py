"""Layouts of a burst in the controller: its requester, bank, row and column.

Consecutive blocks of ``abi.BEATS_PER_BLOCK`` beats lie in consecutive banks, so the next block of a
stream is in another bank, whose row can be opened early.
"""

from amaranth.hdl import Cat, Value
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2, exact_log2

from ...abi import BEATS_PER_BLOCK
from ...sdram_part import SdramPart
from .pins import ALL_BANKS

__all__ = ["ChipLayout", "PlacedBurst", "Requester"]


class Requester(enum.Enum, shape=2):
    """The port of a burst: a read port or the write port."""

    A = 0
    B = 1
    WRITE = 2


class ChipLayout:
    """The mapping of byte addresses and beats of ``data_width`` bits to ``part``.

    Raises ``ValueError`` unless a beat is a burst of 1, 2, 4 or 8 words, a row holds a block, and
    the chip has an address line for PRECHARGE of all banks.
    """

    def __init__(self, part: SdramPart, data_width: int) -> None:
        self.part = part
        self.data_width = data_width
        self.words = data_width // part.width
        """Words in a beat, which is the chip's burst length."""
        if self.words not in (1, 2, 4, 8) or self.words * part.width != data_width:
            raise ValueError(
                f"data_width: {data_width} bits are not 1, 2, 4 or 8 words of {part.width} bits"
            )
        self.word_bits = exact_log2(self.words)
        self.byte_bits = exact_log2(data_width // 8)
        self.beat_bits = ceil_log2(BEATS_PER_BLOCK)
        self.column_bits = part.column_bits - self.word_bits
        """Bits of a beat's index in its row."""
        if self.column_bits < self.beat_bits:
            raise ValueError(f"{part.name}: a row holds no {BEATS_PER_BLOCK} beats")
        if part.row_bits <= ALL_BANKS:
            raise ValueError(
                f"{part.name}: {part.row_bits} address lines; expected {ALL_BANKS + 1} or more"
            )

    def parts(self, address: Value) -> tuple[Value, Value, Value]:
        """Return bank, row and column of a byte address; the column counts beats."""
        at = self.byte_bits
        beat, at = address[at : at + self.beat_bits], at + self.beat_bits
        bank, at = address[at : at + self.part.bank_bits], at + self.part.bank_bits
        above = self.column_bits - self.beat_bits
        return (
            bank,
            address[at + above : at + above + self.part.row_bits],
            Cat(beat, address[at : at + above]),
        )


class PlacedBurst(data.StructLayout):
    """A burst of ``length`` + 1 beats that begins at ``column``, counted in beats."""

    def __init__(self, layout: ChipLayout) -> None:
        super().__init__(
            {
                "requester": Requester,
                "write": 1,
                "bank": layout.part.bank_bits,
                "row": layout.part.row_bits,
                "column": layout.column_bits,
                "length": layout.beat_bits,
            }
        )
