"""Counts the bytes of a request: how many are left, and the address of the next one."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi.frames import FRAME_DATA_BYTES, HELLO_BYTES

__all__ = ["SIZE_BITS", "ByteCounter"]

SIZE_BITS = FRAME_DATA_BYTES.bit_length()
"""Number of bits of SIZE that are counted; the upper ones are 0 in any legal SIZE."""


class ByteCounter(wiring.Component):
    """Two counters, of bytes and of addresses. Both count up: the first is minus the bytes left.

    An iCE40 adder can select between its sum and another value at no cost, but cannot negate. SIZE
    is therefore loaded inverted, ``start`` adds the 1 that completes the negation, and the address
    is loaded as its sum with 0.

    Parameters
    ----------
    address_bits
        Number of low address bits that are counted, SIZE_BITS or more.

    Members
    -------
    size_low, size_high : ``In(1)``; byte : ``In(8)``
        Load ``byte`` into the lower or the upper half of SIZE.
    start : ``In(1)``; first : ``In(32)``
        Load the address of the first byte. 1 in one cycle after each load of SIZE.
    hello : ``In(1)``
        Replace SIZE by HELLO_BYTES. Not together with ``start`` or ``count``.
    count : ``In(1)``
        Count a byte: fewer by one are left.
    advance : ``In(1)``
        Increment ``address`` at the end of the next cycle. The cycle between takes the adder out of
        the path from ``memory.ready``.
    minus_left : ``Out(SIZE_BITS)``
        Minus the number of bytes left. Undefined from a load of SIZE to ``start``.
    done : ``Out(1)``
        No byte is left.
    address : ``Out(address_bits + 1)``
        Address of the next byte. The topmost bit is a carry.
    compute_last : ``In(1)``; last : ``Out(address_bits + 1)``
        With ``compute_last``, and before a byte is counted: the address of the last byte.

    Latency: 1 cycle; ``last`` 0 cycles. Throughput: a byte every 2 cycles.
    """

    def __init__(self, address_bits: int) -> None:
        super().__init__(
            {
                "size_low": In(1),
                "size_high": In(1),
                "byte": In(8),
                "start": In(1),
                "first": In(32),
                "hello": In(1),
                "count": In(1),
                "advance": In(1),
                "minus_left": Out(SIZE_BITS),
                "done": Out(1),
                "address": Out(address_bits + 1),
                "compute_last": In(1),
                "last": Out(address_bits + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._count_bytes(m)
        self._count_addresses(m)
        return m

    def _count_bytes(self, m: Module) -> None:
        minus_left = Signal(SIZE_BITS, reset_less=True)
        increment = Signal()
        following = Signal(SIZE_BITS)
        m.d.comb += [
            self.minus_left.eq(minus_left),
            self.done.eq(minus_left == 0),
            increment.eq(self.start | self.count),
            # The addend is the complement of `increment`, so that it can select in iCE40's adder;
            # while it is not 0, the sum is not used.
            following.eq(minus_left + (~increment).replicate(SIZE_BITS) + 1),
        ]
        with m.If(self.size_low | increment):
            m.d.sync += minus_left[:8].eq(Mux(increment, following, ~self.byte))
        with m.If(self.size_high | increment):
            m.d.sync += minus_left[8:].eq(Mux(increment, following[8:], ~self.byte))
        with m.If(self.hello):
            m.d.sync += minus_left.eq(-HELLO_BYTES)

    def _count_addresses(self, m: Module) -> None:
        address = Signal.like(self.address, reset_less=True)
        advance = Signal()
        following = Signal.like(address)
        # The lower bits are loaded through the adder, the upper ones past it: their addend selects.
        size_less_1 = ~self.minus_left
        low = Mux(self.start, self.first[:SIZE_BITS], Mux(self.compute_last, size_less_1, 0))
        high = self.start.replicate(len(address) - SIZE_BITS)
        m.d.comb += [
            self.address.eq(address),
            self.last.eq(following),
            following.eq(address + Cat(low, high) + advance),
        ]
        m.d.sync += advance.eq(self.advance)
        with m.If(self.start | advance):
            loaded = Cat(following[:SIZE_BITS], self.first[SIZE_BITS:])
            m.d.sync += address.eq(Mux(self.start, loaded, following))
        with m.If(self.size_low):
            m.d.sync += address[:SIZE_BITS].eq(0)
