"""A FIFO of one clock, with back-pressure or controlled by credit."""

from amaranth.hdl import Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ..primitives import Ram, step
from .buffer import StreamBuffer
from .register_slices import SkidBuffer

__all__ = ["Fifo"]

_SHALLOW = 16
"""Depth up to which Yosys chooses the storage, so that it fits iCE40, which has no LUT RAM."""

_SHALLOW_REGISTERED = 4
"""The same with a registered output, which Yosys may merge with deep storage into a block RAM."""


class Fifo(StreamBuffer):
    """A first-word fall-through FIFO: ``o`` offers the oldest payload by itself.

    Parameters
    ----------
    shape
        Shape of a payload; may be a data layout.
    depth
        Payloads that it holds: a power of two, 2 or more. Depth 2 is a `SkidBuffer`.
    block_ram
        Read the storage through a register, so that it maps to block RAM (the only RAM of iCE40).
        Otherwise the read is asynchronous, and the storage maps to LUT RAM (ECP5, Gowin).
    registered
        Make ``o.payload`` a register, for a user whose logic leaves no time for a RAM's output.
        Always so with ``block_ram``.
    credit
        Build a FIFO controlled by credit: ``i.ready`` is always 1 and no level is counted, because
        the user never sends more payloads than fit (see `Credit`). It needs depth 4 or more.

    Members
    -------
    i
        ``ready`` is 0 only while ``level == depth``, and depends on registers alone. With
        ``credit``, a payload that does not fit is lost, and so are all that the FIFO holds.
    o
        ``valid`` is a register.
    level
        Payloads held, including those that ``o`` does not offer yet. A register, except at depth
        2; always 0 with ``credit``.

    Latency: 1 cycle from ``i`` to ``o``; 2 if ``registered`` or ``block_ram`` at depth 4 or more.
    Throughput: 1 payload a cycle. A full FIFO accepts a payload in the cycle after one left.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area (36 bits, depth 64): ECP5 12 LUT4, 10 CCU2C, 20 flip-flops and a block RAM, or 123 LUT4 and
    36 LUT RAMs; iCE40 67 LUT4 and 3 RAMs. iCE40 has no LUT RAM: without ``block_ram`` the storage
    becomes flip-flops up to depth 16, and Yosys refuses more.
    Clock: ECP5-6 LUT RAM 211 MHz (297 at depth 16), block RAM 145 MHz; iCE40 HX 204 MHz.
    Bound of the clock: the RAM's output; with LUT RAM, its address and the multiplexer behind it.

    Raises ``ValueError`` if ``depth`` is not a power of two, or is 2 with ``credit``.
    """

    def __init__(
        self,
        shape: ShapeLike,
        depth: int,
        *,
        block_ram: bool = False,
        registered: bool = False,
        credit: bool = False,
    ) -> None:
        least = 4 if credit else 2
        if depth < least or depth & (depth - 1):
            raise ValueError(f"depth: {depth} is not a power of two, {least} or more")
        self._credit = credit
        self._depth = depth
        self._block_ram = block_ram
        self._registered = registered or block_ram
        super().__init__(shape, level=Out(range(depth + 1)))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._depth == 2:
            m.submodules.skid = skid = SkidBuffer(self._shape)
            wiring.connect(m, wiring.flipped(self.i), skid.i)
            wiring.connect(m, skid.o, wiring.flipped(self.o))
            m.d.comb += self.level.eq(skid.o.valid + (skid.o.valid & ~skid.i.ready))
            return m

        # Reads and writes never collide: a payload is read a cycle after its write, or later.
        # With LUT RAM, "distributed" keeps Yosys from merging the RAM and the register that takes
        # the payload next into a block RAM.
        shallow = _SHALLOW_REGISTERED if self._registered else _SHALLOW
        lut_ram = not self._block_ram and self._depth > shallow
        style = "distributed" if lut_ram else None
        ram = Ram(Shape.cast(self._shape).width, self._depth, style=style)
        m.submodules.storage = ram.memory
        write = ram.write
        enter = Signal()
        leave = Signal()
        m.d.comb += [
            enter.eq(self.i.valid & self.i.ready),
            leave.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(1 if self._credit else ~self.level[-1]),
            write.data.eq(Value.cast(self.i.payload)),
            write.en.eq(enter),
        ]
        with m.If(enter):
            m.d.sync += write.addr.eq(write.addr + 1)
        if not self._credit:
            step(m, self.level, enter, leave)

        self._offer(m, ram, enter, leave)
        return m

    def _offer(self, m: Module, ram: Ram, enter: Signal, leave: Signal) -> None:
        """Show the oldest payload on ``o``."""
        write, read = ram.write, ram.read
        # `more`: another payload follows. It is early in the cycle, because `leave` is late.
        more = Signal()
        valid = Signal()
        m.d.comb += self.o.valid.eq(valid)
        if self._registered:
            # Of the payloads held, `ram.output` shows one while `valid`; the rest wait in the RAM.
            stored = self.level[1:].any() | (self.level[0] & ~valid)
            m.d.comb += [
                more.eq(read.addr != write.addr if self._credit else stored),
                Value.cast(self.o.payload).eq(ram.output),
            ]
            # An equation, because the enable of `valid` would lie between `ready` and the others.
            m.d.sync += valid.eq(more | (valid & ~self.o.ready))
            with m.If(more & (~valid | self.o.ready)):
                m.d.sync += [ram.load(), read.addr.eq(read.addr + 1)]
        else:
            following = Signal(len(read.addr), init=1)  # unused unless compared
            m.d.comb += [
                more.eq(following != write.addr if self._credit else self.level != 1),
                Value.cast(self.o.payload).eq(read.data),
            ]
            with m.If(leave):
                m.d.sync += [read.addr.eq(read.addr + 1), following.eq(following + 1)]
            with m.If(enter):
                m.d.sync += valid.eq(1)
            with m.Elif(leave):
                m.d.sync += valid.eq(more)
