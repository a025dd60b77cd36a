"""Compares addresses with the bounds of the memory. Builds expressions only, no registers."""

from amaranth.hdl import Cat, Const, Value

from ..configuration import Configuration

__all__ = ["MemoryBounds"]


class MemoryBounds:
    """The first and the last address of a memory, compared in as few gates as they allow.

    A memory aligned to its size, a power of two, needs no adder: the upper bits of an address
    decide, and the lower `bits` are the offset.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._base, self._last = configuration.memory_base, configuration.memory_last
        size = configuration.memory_bytes
        self._aligned = size & (size - 1) == 0 and self._base % size == 0
        self.bits = ((size - 1) if self._aligned else self._last).bit_length()
        """Number of low address bits that differ between the addresses of the memory."""

    def contain(self, first: Value, last: Value) -> Value:
        """Return whether an access is within the memory.

        ``first`` has 32 bits. ``last`` is the address of the last byte, cut to `bits` + 1 or more.
        """
        if self._aligned:
            above = self._base >> self.bits
            # More bits than the carry matter only in a memory smaller than an access.
            cut = above & (1 << len(last) - self.bits) - 1
            return (first[self.bits :] == above) & (last[self.bits :] == cut)
        low = first[: self.bits]
        within = (low >= self._base) & (last[: self.bits + 1] <= self._last)
        return (first[self.bits :] == 0) & within

    def address(self, low: Value, width: int) -> Value:
        """Return the address, of ``width`` bits, that ends in the lowest `bits` of ``low``."""
        high = self._base >> self.bits if self._aligned else 0
        return Cat(low[: self.bits], Const(high, 32))[:width]
