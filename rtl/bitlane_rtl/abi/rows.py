"""The bank and row of a byte in a memory, for reports. Plain data only."""

from dataclasses import dataclass

from .codes import BEATS_PER_BLOCK

__all__ = ["Rows"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """Banks and rows of a memory.

    Consecutive blocks of `BEATS_PER_BLOCK` beats are in consecutive banks. The number of a row is
    the address without its low ``size_log2`` bits.
    """

    size_log2: int
    """log2 of the bytes that the rows of one number hold in all banks together, up to 15."""

    banks_log2: int
    """log2 of the banks, up to 3."""

    word_bytes_log2: int
    """log2 of the bytes that the data lines carry at once, up to 3."""

    def locate(self, address: int, data_bytes: int) -> tuple[int, int, int]:
        """Return bank, row and first data line of the byte at ``address``.

        Addresses count from the memory's first byte. A beat has ``data_bytes`` bytes.
        """
        bank = address // (BEATS_PER_BLOCK * data_bytes) % (1 << self.banks_log2)
        return bank, address >> self.size_log2, 8 * (address % (1 << self.word_bytes_log2))
