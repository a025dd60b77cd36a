"""Moves bytes between a request and memory or control window. It checks no address."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import WORD_BYTES
from ..link.memory_bounds import MemoryBounds
from ..ports.signatures import ByteAccess, ControlPort

__all__ = ["DataAccess"]

_WORD_BITS = ceil_log2(WORD_BYTES)


class DataAccess(wiring.Component):
    """Reads and writes bytes of the memory, and words of the control window byte by byte.

    Parameters
    ----------
    bounds
        Bounds of the memory.
    address_bits
        Number of low address bits in ``address`` below the carry.
    address_width
        Width of the memory's addresses.

    Members
    -------
    address : ``In(address_bits + 1)``
        Address of the byte to access. The topmost bit is a carry.
    to_memory, to_control : ``In(1)``
        The request accesses the memory, or the control window.
    write : ``In(1)``
        The request is a WRITE.
    execute : ``In(1)``
        Write the bytes that are taken; while 0, they are dropped.
    take : ``In(1)``; taken : ``Out(1)``
        Take a byte of ``i`` and write it; ``take`` is held until ``taken``. The control window is
        written with a word's last byte.
    fetch : ``In(1)``; fetched : ``Out(1)``
        Read a byte, if ``to_memory`` or if it is the first of a word of the control window;
        ``fetch`` is held until ``fetched``.
    loads : ``Out(1)``
        The byte that is fetched is the first of a word.
    load : ``In(1)``
        Load that word into ``word``. 1 in the cycle after ``loads``.
    shift_in, shift_out : ``In(1)``
        Shift the byte of ``i`` into ``word``, or a byte out of it. ``taken`` shifts in, too.
    word : ``Out(32)``
        A shift register, the least significant byte first.
    i : ``In(stream.Signature(8))``
        Requests.
    memory : ``Out(ByteAccess(address_width))``
    control : ``In(ControlPort())``

    Latency: 0 cycles. Throughput: a byte a cycle.
    Path through it: from ``memory.ready`` to ``i.ready``.
    """

    def __init__(self, bounds: MemoryBounds, address_bits: int, address_width: int) -> None:
        self._bounds = bounds
        super().__init__(
            {
                "address": In(address_bits + 1),
                "to_memory": In(1),
                "to_control": In(1),
                "write": In(1),
                "execute": In(1),
                "take": In(1),
                "taken": Out(1),
                "fetch": In(1),
                "fetched": Out(1),
                "loads": Out(1),
                "load": In(1),
                "shift_in": In(1),
                "shift_out": In(1),
                "word": Out(32),
                "i": In(stream.Signature(8)),
                "memory": Out(ByteAccess(address_width)),
                "control": In(ControlPort()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        byte = self.i.payload
        index = self.address[:_WORD_BITS]
        written = Signal()
        m.d.comb += [
            self.i.ready.eq(self.take & (~self.execute | self.to_control | self.memory.ready)),
            self.taken.eq(self.i.ready & self.i.valid),
            written.eq(self.take & self.i.valid & self.execute),
            self.memory.address.eq(self._bounds.address(self.address, len(self.memory.address))),
            self.memory.enable.eq((written & ~self.to_control) | (self.fetch & self.to_memory)),
            self.memory.write.eq(self.write),
            self.memory.write_data.eq(byte),
            self.control.address.eq(Cat(Const(0, _WORD_BITS), self.address[_WORD_BITS:])),
            self.control.write.eq(written & self.to_control & index.all()),
            self.control.write_data.eq(Cat(self.word[8:], byte)),
            self.control.read.eq(self.loads),
            self.loads.eq(self.fetch & self.to_control & ~index.any()),
            self.fetched.eq(self.fetch & (~self.to_memory | self.memory.ready)),
        ]
        word = Signal(32, reset_less=True)
        m.d.comb += self.word.eq(word)
        with m.If(self.load):
            m.d.sync += word.eq(self.control.read_data)
        with m.Elif(self.shift_in | self.shift_out | self.taken):
            m.d.sync += word.eq(Cat(word[8:], byte))
        return m
