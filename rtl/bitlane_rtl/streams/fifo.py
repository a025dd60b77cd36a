"""A FIFO of one clock, with back-pressure or controlled by credit."""

from amaranth.hdl import Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ..counter import step
from ..ram import Ram
from .buffer import StreamBuffer
from .register_slices import Skid

__all__ = ["Queue"]


class Queue(StreamBuffer):
    """First in, first out; the oldest payload falls through to ``o`` without being asked for.

    Parameters
    ----------
    shape
        Shape of a payload; may be a data layout.
    depth
        Payloads that it holds: a power of two, 2 or more. Depth 2 is a `Skid`.
    block_ram
        Whether to read the storage through a register, so that it maps to block RAM (the only
        RAM of iCE40); else it is read asynchronously, and maps to LUT RAM (ECP5, Gowin).
    registered
        Whether ``o.payload`` comes from a register too, where what follows leaves no time for a
        RAM's output. Always so with ``block_ram``.
    credit
        Whether the owner sees to it that there is always room: ``i.ready`` is 1, and nothing is
        counted. Depth 4 or more.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        ``ready`` is 0 only while ``level == depth``, and comes from a register. With ``credit``
        what comes then is lost, and so is all that the queue holds.
    o : ``Out(stream.Signature(shape))``
        ``valid`` comes from a register.
    level : ``Out(range(depth + 1))``
        Payloads held, whether ``o`` offers them yet or not. Registered, except at depth 2; 0 with
        ``credit``.

    Latency: 1 cycle from ``i`` to ``o``; 2 if ``registered`` or ``block_ram`` at depth 4 or more.
    Throughput: 1 payload a cycle. A full queue takes a payload in the cycle after one left.
    Undefined: ``o.payload`` while ``o.valid`` is 0.
    Area (36 bits, depth 64): ECP5 12 LUT4, 10 CCU2C, 20 flip-flops and a block RAM, or 123 LUT4 and
    36 LUT RAMs; iCE40 67 LUT4 and 3 RAMs. iCE40 has no LUT RAM: without ``block_ram`` the storage
    becomes flip-flops up to depth 16, and Yosys refuses more.
    Clock: ECP5-6 LUT RAM 211 MHz (297 at depth 16), block RAM 145 MHz; iCE40 HX 204 MHz.
    Path that bounds the clock: the RAM's output; at LUT RAM its address and the multiplexer behind.

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
            raise ValueError(f"depth: {depth} is no power of two, {least} or more")
        self._credit = credit
        self._depth = depth
        self._block_ram = block_ram
        self._registered = registered or block_ram
        super().__init__(shape, level=Out(range(depth + 1)))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._depth == 2:
            m.submodules.skid = skid = Skid(self._shape)
            wiring.connect(m, wiring.flipped(self.i), skid.i)
            wiring.connect(m, skid.o, wiring.flipped(self.o))
            m.d.comb += self.level.eq(skid.o.valid + (skid.o.valid & ~skid.i.ready))
            return m

        # Reads and writes never collide: a payload is read a cycle after its write, or later.
        # With LUT RAM, "distributed" keeps Yosys from merging the RAM and the register that takes
        # the payload next into a block RAM. A shallow queue may be on iCE40, which has no LUT RAM.
        lut_ram = not self._block_ram and self._depth > (4 if self._registered else 16)
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
        # `more`: a payload follows the one on `o`. Early in the cycle, for `leave` comes late.
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
            with m.If(~valid | self.o.ready):
                m.d.sync += valid.eq(more)
                with m.If(more):
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
