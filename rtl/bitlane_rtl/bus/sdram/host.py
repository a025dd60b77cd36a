"""Turns each byte access of the host into a burst of one beat. It caches nothing."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...ports.signatures import ByteAccess
from .burst import ChipLayout

__all__ = ["Host"]


class Host(wiring.Component):
    """Stores the host's access until it is complete.

    Members
    -------
    port : ``In(ByteAccess(address_width))``
    requests : ``Out(1)``
        An access waits for the arbiter.
    address, write : ``Out(address_width)``, ``Out(1)``
        The access's byte address, and 1 if it is a write.
    granted : ``In(1)``
        The arbiter grants the access in this cycle.
    data, strobe : ``Out(data_width)``, ``Out(data_width // 8)``
        The beat to write.
    written : ``In(1)``
        The access's WRITE is issued in this cycle.
    arrived : ``In(1)``
        ``beat`` is valid in this cycle.
    beat : ``In(data_width)``
        The beat that was read.

    Latency: a write is ready at once if no access is stored; a read 2 cycles after ``arrived``.
    """

    def __init__(self, layout: ChipLayout, address_width: int) -> None:
        self._layout = layout
        super().__init__(
            {
                "port": In(ByteAccess(address_width)),
                "requests": Out(1),
                "address": Out(address_width),
                "write": Out(1),
                "granted": In(1),
                "data": Out(layout.data_width),
                "strobe": Out(layout.data_width // 8),
                "written": In(1),
                "arrived": In(1),
                "beat": In(layout.data_width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port, bytes_ = self.port, self._layout.data_width // 8
        address = Signal.like(port.address, reset_less=True)
        write = Signal()
        value = Signal(8, reset_less=True)
        busy = Signal()
        requesting = Signal()
        answers = Signal()
        beat = Signal.like(self.beat, reset_less=True)
        arrived = Signal()
        byte = address[: self._layout.byte_bits]
        m.d.comb += [
            self.requests.eq(requesting),
            self.address.eq(address),
            self.write.eq(write),
            self.data.eq(value.replicate(bytes_)),
            self.strobe.eq(1 << byte),
            port.ready.eq(Mux(port.write, ~busy, answers)),
            port.read_data.eq(value),
        ]
        m.d.sync += [
            arrived.eq(self.arrived),
            answers.eq(arrived),
            requesting.eq((requesting & ~self.granted) | (port.enable & ~busy)),
            busy.eq((busy & ~(self.written | answers)) | (port.enable & ~busy)),
        ]
        with m.If(self.arrived):
            m.d.sync += beat.eq(self.beat)
        with m.If(arrived):
            m.d.sync += value.eq(beat.word_select(byte, 8))
        with m.If(~busy):
            m.d.sync += [
                address.eq(port.address),
                write.eq(port.write),
                value.eq(port.write_data),
            ]
        return m
