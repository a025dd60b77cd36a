"""The host's bytes: each a burst of one beat. Keeps nothing of the memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...ports.byte_access import ByteAccess
from .burst import ChipLayout

__all__ = ["Host"]


class Host(wiring.Component):
    """Keeps the host's access until it has taken place.

    Members
    -------
    port : ``In(ByteAccess(address_width))``
    asks : ``Out(1)``
        There is an access.
    address, write : ``Out(address_width)``, ``Out(1)``
        Its address, and whether it is a WRITE.
    picked : ``In(1)``
        It is taken, in this cycle.
    data, strobe : ``Out(data_width)``, ``Out(data_width // 8)``
        Its beat.
    written : ``In(1)``
        Its WRITE is given, in this cycle.
    came : ``In(1)``
        Its beat was read, in this cycle.
    beat : ``In(data_width)``
        That beat.

    Latency: a write is ready at once if nothing is kept; a read 2 cycles after ``came``.
    """

    def __init__(self, layout: ChipLayout, address_width: int) -> None:
        self._layout = layout
        super().__init__(
            {
                "port": In(ByteAccess(address_width)),
                "asks": Out(1),
                "address": Out(address_width),
                "write": Out(1),
                "picked": In(1),
                "data": Out(layout.data_width),
                "strobe": Out(layout.data_width // 8),
                "written": In(1),
                "came": In(1),
                "beat": In(layout.data_width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port, bytes_ = self.port, self._layout.data_width // 8
        address = Signal.like(port.address, reset_less=True)
        write = Signal()
        value = Signal(8, reset_less=True)
        kept = Signal()
        asked = Signal()
        given = Signal()
        beat = Signal.like(self.beat, reset_less=True)
        came = Signal()
        byte = address[: self._layout.byte_bits]
        m.d.comb += [
            self.asks.eq(asked),
            self.address.eq(address),
            self.write.eq(write),
            self.data.eq(value.replicate(bytes_)),
            self.strobe.eq(1 << byte),
            port.ready.eq(Mux(port.write, ~kept, given)),
            port.read_data.eq(value),
        ]
        m.d.sync += [
            came.eq(self.came),
            given.eq(came),
            asked.eq((asked & ~self.picked) | (port.enable & ~kept)),
            kept.eq((kept & ~(self.written | given)) | (port.enable & ~kept)),
        ]
        with m.If(self.came):
            m.d.sync += beat.eq(self.beat)
        with m.If(came):
            m.d.sync += value.eq(beat.word_select(byte, 8))
        with m.If(~kept):
            m.d.sync += [
                address.eq(port.address),
                write.eq(port.write),
                value.eq(port.write_data),
            ]
        return m
