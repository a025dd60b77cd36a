"""The memories of the command ring and of the completions. They do not interpret their words."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..abi import COMPLETION, RECORD_WORDS
from ..primitives import Ram

__all__ = ["Completions", "Ring", "RingRead", "RingWrite"]

_CODE, _INDEX = COMPLETION


class RingWrite(wiring.Signature):
    """Signature of the ring's write port: a word at ``slot * 32 + word`` while ``enable`` is 1."""

    def __init__(self, slots: int) -> None:
        super().__init__(
            {"enable": Out(1), "address": Out(range(slots * RECORD_WORDS)), "data": Out(32)}
        )


class RingRead(wiring.Signature):
    """Signature of the ring's read port: ``columns`` words at a time, word 0 in the low bits.

    ``address``: ``slot * groups + group``; a record has ``groups = 32 / columns`` groups.
    ``words`` are valid from the cycle after ``enable``, and are held until the next one.
    """

    def __init__(self, slots: int, columns: int) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "address": Out(range(slots * RECORD_WORDS // columns)),
                "words": In(32 * columns),
            }
        )


class Ring(wiring.Component):
    """Records of commands: written as words, read as groups of words.

    Parameters
    ----------
    slots
        Records that it holds, a power of two.
    columns
        Words that are read at once: 1, 2 or 4.

    Members
    -------
    write
        Words to write.
    read
        Groups of words to read.

    Latency: 1 cycle from ``read.enable`` to ``read.words``; a word that is written in a cycle can
    be read from the next one on. Throughput: a write and a read a cycle.
    Undefined: ``read.words`` of a read in the cycle of a write to the same group, and of a group
    that was never written.
    Area, for groups of ``width`` bits: block RAM, ``width / 16`` of iCE40's or
    ``ceil(width / 36)`` of ECP5's and Gowin's; no LUT but on iCE40, which emulates the output's
    initial value with ``width`` LUT4.

    Raises ``ValueError`` on other parameters.
    """

    def __init__(self, slots: int, columns: int) -> None:
        if slots < 2 or slots & (slots - 1):
            raise ValueError(f"slots: {slots} is not a power of two, 2 or more")
        if columns not in (1, 2, 4):
            raise ValueError(f"columns: {columns} is none of 1, 2 and 4")
        self._columns = columns
        self._depth = slots * RECORD_WORDS // columns
        super().__init__({"write": In(RingWrite(slots)), "read": In(RingRead(slots, columns))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        write, read = self.write, self.read
        ram = Ram(32 * self._columns, self._depth, granularity=32)
        m.submodules.storage = ram.memory
        column_bits = exact_log2(self._columns)
        m.d.comb += [
            ram.write.addr.eq(write.address[column_bits:]),
            ram.write.data.eq(write.data.replicate(self._columns)),
            ram.write.en.eq(write.enable << write.address[:column_bits]),
            ram.read.addr.eq(read.address),
            read.words.eq(ram.output),
        ]
        with m.If(read.enable):
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
    write
        Write ``status`` and ``index`` in this cycle, to the slot ``index`` modulo ``slots``.
    status
        An ``abi.Status``.
    index
        The command's index modulo ``2**16``.
    read_slot
        The slot to read.
    read_data
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
            ram.write.addr.eq(self.index),
            ram.write.data.eq(Cat(self.status, self.index)),
            ram.write.en.eq(self.write),
            ram.read.addr.eq(self.read_slot),
            self.read_data.eq(ram.output),
        ]
        return m
