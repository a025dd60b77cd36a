"""Turns each byte access of the host into bursts of one beat. It caches nothing."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...ports.signatures import ByteAccess
from .burst import ChipLayout
from .partial_beats import replaced

__all__ = ["Host"]


class Host(wiring.Component):
    """Stores the host's access until it is complete.

    A read or write is one burst. To a chip without masks, a write is a read and then a write of the
    beat with one byte replaced.

    Parameters
    ----------
    layout, address_width
        The chip's layout, and bits of a byte address.
    exists
        Whether there is a host. Without one there is no ``port``, and all outputs stay 0.

    Members
    -------
    port : ``In(ByteAccess(address_width))``
    requests : ``Out(1)``
        An access waits for the arbiter.
    address, write : ``Out(address_width)``, ``Out(1)``
        The burst's byte address, and 1 if it is to be written.
    merging : ``Out(1)``
        A beat has been requested to replace its byte: nobody else may write until it is written.
    granted : ``In(1)``
        The arbiter grants the burst in this cycle.
    data, strobe : ``Out(data_width)``, ``Out(data_width // 8)``
        The beat to write.
    written : ``In(1)``
        The access's WRITE is issued in this cycle.
    arrived : ``In(1)``
        ``beat`` is valid in this cycle.
    beat : ``In(data_width)``
        The beat that was read.

    Latency: a write is ready at once if no access is stored; a read 2 cycles after ``arrived``.
    Throughput: the next access is stored once the burst of the last one has been issued.
    """

    def __init__(self, layout: ChipLayout, address_width: int, exists: bool) -> None:
        self._layout = layout
        self._masks = layout.part.masks
        self._exists = exists
        super().__init__(
            {
                **({"port": In(ByteAccess(address_width))} if exists else {}),
                "requests": Out(1),
                "address": Out(address_width),
                "write": Out(1),
                "merging": Out(1),
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
        if not self._exists:
            return m
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
        copies = value.replicate(bytes_)
        again = Signal()
        if self._masks:
            m.d.comb += [self.write.eq(write), self.data.eq(copies)]
        else:
            m.d.comb += [
                again.eq(arrived & write),
                self.data.eq(replaced(beat, copies, self.strobe)),
            ]
            with m.If(self.granted):
                m.d.sync += self.merging.eq(write & ~self.write)
            with m.If(again | self.written):
                m.d.sync += self.write.eq(again)
        m.d.comb += [
            self.requests.eq(requesting),
            self.address.eq(address),
            self.strobe.eq(1 << byte),
            port.ready.eq(Mux(port.write, ~busy, answers)),
            port.read_data.eq(value),
        ]
        m.d.sync += [
            arrived.eq(self.arrived),
            answers.eq(arrived & ~again),
            requesting.eq((requesting & ~self.granted) | (port.enable & ~busy) | again),
            busy.eq((busy & ~(self.written | answers)) | (port.enable & ~busy)),
        ]
        with m.If(self.arrived):
            m.d.sync += beat.eq(self.beat)
        with m.If(arrived & ~again):
            m.d.sync += value.eq(beat.word_select(byte, 8))
        with m.If(~busy):
            m.d.sync += [
                address.eq(port.address),
                write.eq(port.write),
                value.eq(port.write_data),
            ]
        return m
