"""The CRC-32 of Ethernet and zlib, of words of any width."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

__all__ = ["Crc32"]

_BITS = 32


class Crc32(wiring.Component):
    """Computes the CRC-32 of words.

    `amaranth.lib.crc` computes each bit from those of the register and of the word. Here the two
    are added first, which takes 220 LUT4 instead of 370 on ECP5 for words of 32 bits.

    Parameters
    ----------
    width
        Bits of a word: 32 at most.

    Members
    -------
    clear
        The next word is the first one. Has priority.
    valid, data
        The next word, the first bit of the line in the lowest bit.
    crc
        The CRC of all words since ``clear``.

    Latency: 1 cycle. Throughput: a word a cycle. Raises ``ValueError`` if ``width`` is not 1 to 32.
    """

    def __init__(self, width: int) -> None:
        if not 1 <= width <= _BITS:
            raise ValueError(f"width: {width}; expected 1 to {_BITS}")
        # The CRC is linear: each bit of a word changes the same bits of it, whatever the others.
        algorithm = CRC32_ISO_HDLC(data_width=width)
        self._changes = [
            algorithm.compute([1 << bit]) ^ algorithm.compute([0]) for bit in range(width)
        ]
        super().__init__({"clear": In(1), "valid": In(1), "data": In(width), "crc": Out(_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = len(self.data)
        register = Signal(_BITS, init=-1)
        mixed = Signal(width)
        m.d.comb += [mixed.eq(register[:width] ^ self.data), self.crc.eq(~register)]
        following = []
        for bit in range(_BITS):
            terms = [
                mixed[each] for each, changes in enumerate(self._changes) if changes >> bit & 1
            ]
            following.append(reduce(xor, terms, Const(0)))
        with m.If(self.valid):
            m.d.sync += register.eq(Cat(register[width:], Const(0, width)) ^ Cat(following))
        with m.If(self.clear):
            m.d.sync += register.eq(-1)
        return m
