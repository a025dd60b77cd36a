"""Single-port memories of boards: block RAM, and the single-port RAM of iCE40 UP."""

from amaranth.hdl import Array, Cat, ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from ..primitives import Ram
from .sram import Sram

__all__ = ["BlockRam", "SinglePortRam"]

_SPRAM_WORDS = 1 << 14
_SPRAM_BITS = 16


class BlockRam(wiring.Component):
    """A memory in block RAM.

    Parameters
    ----------
    words, data_width
        Number of words; bits in a word, a multiple of 8.

    Members
    -------
    memory
        The port of the memory.

    Latency: 1 cycle. Throughput: one access per cycle. Words are 0 at power-up.
    """

    def __init__(self, words: int, data_width: int) -> None:
        self._words = words
        super().__init__({"memory": In(Sram(words, data_width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory = self.memory
        # Reads and writes never collide: an access is one or the other.
        ram = Ram(len(memory.read_data), self._words, granularity=8)
        m.submodules.storage = ram.memory
        with m.If(memory.enable):
            m.d.sync += ram.load()
        m.d.comb += [
            ram.read.addr.eq(memory.address),
            ram.write.addr.eq(memory.address),
            ram.write.data.eq(memory.write_data),
            ram.write.en.eq(memory.strobe & memory.enable.replicate(len(memory.strobe))),
            memory.read_data.eq(ram.output),
        ]
        return m


class SinglePortRam(wiring.Component):
    """A memory in the large single-port RAMs of iCE40 UP, two per 64 KiB.

    Parameters
    ----------
    words
        Number of 32-bit words: ``2**14``, or ``2**15``, which uses all four RAMs of an UP5K.

    Members
    -------
    memory
        The port of the memory.

    Latency: 1 cycle. Throughput: one access per cycle. Undefined: words that were never written.
    Amaranth's simulator cannot run it, because the RAMs are instances of ``SB_SPRAM256KA``.
    Source: Lattice FPGA-TN-02022, section 3 and table 3.1: MASKWREN enables groups of 4 bits.

    Raises ``ValueError`` for other sizes.
    """

    def __init__(self, words: int) -> None:
        if words not in (_SPRAM_WORDS, 2 * _SPRAM_WORDS):
            raise ValueError(f"words: {words} is neither {_SPRAM_WORDS} nor {2 * _SPRAM_WORDS}")
        self._rows = words // _SPRAM_WORDS
        super().__init__({"memory": In(Sram(words, 2 * _SPRAM_BITS))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        memory = self.memory
        address, row = memory.address[:14], memory.address[14:]
        outputs = []
        for number in range(self._rows):
            selected = Signal(name=f"selected_{number}")
            m.d.comb += selected.eq(memory.enable & (row == number))
            word = Signal(2 * _SPRAM_BITS, name=f"word_{number}")
            outputs.append(word)
            for half in range(2):
                bits = slice(_SPRAM_BITS * half, _SPRAM_BITS * (half + 1))
                strobe = memory.strobe[2 * half : 2 * half + 2]
                m.submodules[f"ram_{number}_{half}"] = Instance(
                    "SB_SPRAM256KA",
                    i_CLOCK=ClockSignal(),
                    i_ADDRESS=address,
                    i_DATAIN=memory.write_data[bits],
                    i_MASKWREN=Cat(strobe[0].replicate(2), strobe[1].replicate(2)),
                    i_WREN=strobe.any(),
                    i_CHIPSELECT=selected,
                    i_STANDBY=Const(0),
                    i_SLEEP=Const(0),
                    i_POWEROFF=Const(1),
                    o_DATAOUT=word[bits],
                )
        of = Signal(range(self._rows), reset_less=True)
        with m.If(memory.enable):
            m.d.sync += of.eq(row)
        m.d.comb += memory.read_data.eq(Array(outputs)[of])
        return m
