"""Where a byte lies in memory that has banks and rows, for what the host says of it. Plain data."""

from dataclasses import dataclass

from .codes import BEATS_PER_BLOCK

__all__ = ["Rows"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """Banks and rows of a memory.

    The blocks of `BEATS_PER_BLOCK` beats go to the banks in turn; a row's number is the address
    above ``size_log2`` bits.
    """

    size_log2: int
    """Of the bytes that the rows of one number hold in all banks together, up to 15."""

    banks_log2: int
    """Up to 3."""

    word_bytes_log2: int
    """Bytes that have data lines of their own, up to 3."""

    def place(self, address: int, data_bytes: int) -> tuple[int, int, int]:
        """Bank, row and the first data line of the byte at ``address``; beats have ``data_bytes``.

        Addresses count from the memory's first byte.
        """
        bank = address // (BEATS_PER_BLOCK * data_bytes) % (1 << self.banks_log2)
        return bank, address >> self.size_log2, 8 * (address % (1 << self.word_bytes_log2))
