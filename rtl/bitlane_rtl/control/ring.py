"""The memories of the command ring and of the completions. They do not interpret their words."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import COMPLETION, RECORD_WORDS
from ..primitives import Ram

__all__ = ["Completions", "Ring"]

_CODE, _INDEX = COMPLETION


class Ring(wiring.Component):
    """Records of commands: written as words, read as groups of words, word 0 in the low bits.

    Parameters
    ----------
    slots
        Records that it holds, a power of two.
    width
        Bits that are read at once: 32, 64 or 128. A record has ``groups = 1024 / width`` groups.

    Members
    -------
    write : ``In(1)``
        Write ``write_data`` in this cycle.
    write_address : ``In(range(slots * 32))``
        Word: ``slot * 32 + word``.
    write_data : ``In(32)``
    read : ``In(1)``
        Read in this cycle.
    read_address : ``In(range(slots * groups))``
        Group: ``slot * groups + group``.
    read_data : ``Out(width)``
        What was read last; changes in the cycle after ``read`` and is held until the next one.

    Latency: 1 cycle from ``read`` to ``read_data``; what is written in a cycle can be read from the
    next one on. Throughput: a write and a read a cycle.
    Undefined: ``read_data`` of a read in the cycle of a write to the same group, and of a group
    that was never written.
    Area: block RAM, ``width / 16`` of iCE40's or ``ceil(width / 36)`` of ECP5's and Gowin's; no LUT
    but on iCE40, which emulates the output's initial value with ``width`` LUT4.

    Raises ``ValueError`` on other parameters.
    """

    def __init__(self, slots: int, width: int) -> None:
        if slots < 2 or slots & (slots - 1):
            raise ValueError(f"slots: {slots} is not a power of two, 2 or more")
        if width not in (32, 64, 128):
            raise ValueError(f"width: {width} is none of 32, 64 and 128")
        self._width = width
        self._words = width // 32
        self._depth = slots * RECORD_WORDS // self._words
        super().__init__(
            {
                "write": In(1),
                "write_address": In(range(slots * RECORD_WORDS)),
                "write_data": In(32),
                "read": In(1),
                "read_address": In(range(self._depth)),
                "read_data": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ram = Ram(self._width, self._depth, granularity=32)
        m.submodules.storage = ram.memory
        word_bits = exact_log2(self._words)
        m.d.comb += [
            ram.write.addr.eq(self.write_address[word_bits:]),
            ram.write.data.eq(self.write_data.replicate(self._words)),
            ram.write.en.eq(self.write << self.write_address[:word_bits]),
            ram.read.addr.eq(self.read_address),
            self.read_data.eq(ram.output),
        ]
        with m.If(self.read):
            m.d.sync += ram.load()
        return m


class Completions(wiring.Component):
    """Storage of the completions of commands: an `abi.COMPLETION` for each slot.

    Parameters
    ----------
    slots
        Words that it holds, a power of two.

    Members
    -------
    write : ``In(1)``
        Write ``status`` and ``index`` in this cycle.
    write_slot : ``In(range(slots))``
    status : ``In(8)``
        An ``abi.Status``.
    index : ``In(16)``
        The command's index modulo ``2**16``.
    read_slot : ``In(range(slots))``
    read_data : ``Out(32)``
        The `abi.COMPLETION` of the ``read_slot`` of the cycle before.

    Latency: 1 cycle from ``read_slot`` to ``read_data``; what is written in a cycle can be read
    from the next one on. Throughput: a write and a read a cycle. Words are 0 at power-up.
    Undefined: a read in the same cycle as a write to its slot. A host that has seen RETIRED or
    FAULT change leaves out the next cycle; neither AXI4-Lite nor the link is as quick.
    Area for 16 slots: ECP5 6 LUT RAMs and 24 flip-flops, iCE40 2 block RAMs and 24 LUT4.
    """

    def __init__(self, slots: int) -> None:
        if slots < 2 or slots & (slots - 1):
            raise ValueError(f"slots: {slots} is not a power of two, 2 or more")
        self._slots = slots
        super().__init__(
            {
                "write": In(1),
                "write_slot": In(range(slots)),
                "status": In(_CODE.width),
                "index": In(_INDEX.width),
                "read_slot": In(range(slots)),
                "read_data": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ram = Ram(_CODE.width + _INDEX.width, self._slots)
        m.submodules.storage = ram.memory
        m.d.sync += ram.load()
        m.d.comb += [
            ram.write.addr.eq(self.write_slot),
            ram.write.data.eq(Cat(self.status, self.index)),
            ram.write.en.eq(self.write),
            ram.read.addr.eq(self.read_slot),
            self.read_data.eq(ram.output),
        ]
        return m
