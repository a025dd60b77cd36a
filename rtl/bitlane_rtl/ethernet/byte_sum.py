"""The sum of the internet checksum (RFC 1071), a byte a cycle."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ByteSum"]


class ByteSum(wiring.Component):
    """Adds 16-bit numbers in ones' complement, byte by byte.

    The carry of each half belongs to the other half, and the next byte does, too: so one adder of 8
    bits and a carry serve both, and the two halves take turns.

    Parameters
    ----------
    init
        The sum after ``clear``.

    Throughput: a byte a cycle.
    """

    clear: In(1)
    """Set the sum to ``init``. The next byte is the more significant one of a number."""
    zero: In(1)
    """Set the sum to 0, likewise."""
    byte: In(8)
    """The byte to add, 0 for none. Each cycle adds one."""
    complete: Out(1)
    """All bits of the sum are 1, as in intact data that hold their checksum. Valid 3 cycles after
    the last byte that is not 0."""

    def __init__(self, init: int = 0) -> None:
        self._init = init
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        following = Signal(8, reset_less=True)  # the half that the byte is added to
        other = Signal(8, reset_less=True)
        carry = Signal(reset_less=True)
        m.d.sync += [
            Cat(other, carry).eq(following + self.byte + carry),
            following.eq(other),
            self.complete.eq(Cat(following, other).all()),
        ]
        with m.If(self.clear):
            m.d.sync += [following.eq(self._init >> 8), other.eq(self._init & 0xFF), carry.eq(0)]
        with m.If(self.zero):
            m.d.sync += [following.eq(0), other.eq(0), carry.eq(0)]
        return m
