"""The memory's range of addresses, and its words. Combinational only."""

from dataclasses import dataclass

from amaranth.hdl import Value

__all__ = ["AddressRange", "word_shape"]


@dataclass(frozen=True, slots=True)
class AddressRange:
    """``size`` bytes from ``base`` on, in words of ``data_width`` bits.

    Both are multiples of a word. An *index* counts words from ``base``, modulo the address space:
    whatever is not in the memory has an index past its last one.
    """

    address_width: int
    data_width: int
    base: int
    size: int

    @property
    def _word_log2(self) -> int:
        return (self.data_width // 8).bit_length() - 1

    @property
    def index_bits(self) -> int:
        """Bits of an index."""
        return self.address_width - self._word_log2

    @property
    def words(self) -> int:
        """Words in the memory."""
        return self.size >> self._word_log2

    def index(self, address: Value) -> Value:
        """Index of the word with byte ``address``."""
        base = self.base >> self._word_log2
        return (address[self._word_log2 :] - base)[: self.index_bits]

    def inside(self, index: Value) -> Value:
        """Whether word ``index`` is in the memory."""
        return index < self.words

    def between(self, index: Value, first: Value, last: Value) -> Value:
        """Whether word ``index`` holds a byte of those from address ``first`` to ``last``."""
        return (index >= self.index(first)) & (index <= self.index(last))


def word_shape(addresses: AddressRange) -> range:
    """Shape of the address of a RAM that holds the memory."""
    return range(addresses.words)
