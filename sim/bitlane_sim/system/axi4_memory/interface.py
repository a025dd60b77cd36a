"""The memory's range of addresses, and the signature of its settings. Combinational only."""

from dataclasses import dataclass

from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..ports import MEMORY_CHANNELS


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


class ReadStorage(wiring.Signature):
    """Read port of a synchronous RAM outside of the circuit, seen from the circuit."""

    def __init__(self, addresses: AddressRange) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "address": Out(word_shape(addresses)),
                "data": In(addresses.data_width),
            }
        )


class WriteStorage(wiring.Signature):
    """Write port of a synchronous RAM outside of the circuit, seen from the circuit."""

    def __init__(self, addresses: AddressRange) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "address": Out(word_shape(addresses)),
                "data": Out(addresses.data_width),
                "mask": Out(addresses.data_width // 8),
            }
        )


class MemoryControl(wiring.Signature):
    """Settings of the memory, seen from whoever sets them. All may change at any time.

    Members
    -------
    latency : ``Out(8)``
        Cycles that R and B come later than in a memory without waits. Applies to bursts accepted,
        or completed, from then on.
    stall_ar, stall_r, stall_aw, stall_w, stall_b : ``Out(9)``
        Chance in 256 that the channel does nothing in a cycle; from 256 on it never does anything.
        A valid that has risen stays.
    seed, seed_load : ``Out(32)``, ``Out(1)``
        While ``seed_load`` is high, the random stalls start again from ``seed``.
    error_read, error_write : ``Out(1)``
        Whether beats in the error range are answered ``error_response``. Those of a write are not
        stored, and its burst is answered with an error.
    error_first, error_last : ``Out(address_width)``
        First and last byte of the error range; it takes whole beats.
    error_response : ``Out(2)``
        A ``Response``.
    hang_read, hang_write : ``Out(2)``
        A ``Hang``.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "latency": Out(8),
                **{f"stall_{channel}": Out(9) for channel in MEMORY_CHANNELS},
                "seed": Out(32),
                "seed_load": Out(1),
                "error_read": Out(1),
                "error_write": Out(1),
                "error_first": Out(address_width),
                "error_last": Out(address_width),
                "error_response": Out(2),
                "hang_read": Out(2),
                "hang_write": Out(2),
            }
        )
