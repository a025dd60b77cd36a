"""Routes datagrams to their user, and everything that is sent to the builder."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .packets import PacketKind, PacketWord

__all__ = ["PacketRouter"]


class PacketRouter(wiring.Component):
    """Routes requests of ARP and echoes to the builder, and datagrams to the user and back.

    Packets are never interleaved. Replies and the user's datagrams take turns, so that neither can
    keep the other from the line.

    Members
    -------
    i : ``In(stream.Signature(PacketWord))``
        Packets that were received.
    received : ``Out(stream.Signature(PacketWord))``; sent : ``In(stream.Signature(PacketWord))``
        Datagrams to and from the user.
    o : ``Out(stream.Signature(PacketWord))``
        Packets to build.

    Latency: 0 cycles, 1 before a packet of ``o``. Throughput: a word a cycle.
    """

    i: In(stream.Signature(PacketWord))
    received: Out(stream.Signature(PacketWord))
    sent: In(stream.Signature(PacketWord))
    o: Out(stream.Signature(PacketWord))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = Signal(init=1)  # the next word of `i` is the first one of a packet
        replied = Signal()  # the kind of the packet
        reply = Signal()
        busy = Signal()
        of_user = Signal()  # whose turn it is, while a packet is routed and after it
        kind: Any = data.View(PacketKind, self.i.payload.data[: PacketKind.as_shape().size])
        m.d.comb += [
            reply.eq(Mux(first, kind.arp | kind.echo, replied)),
            self.received.payload.eq(self.i.payload),
            self.received.valid.eq(self.i.valid & ~reply),
            self.i.ready.eq(Mux(reply, self.o.ready & busy & ~of_user, self.received.ready)),
            self.sent.ready.eq(self.o.ready & busy & of_user),
            self.o.valid.eq(busy & Mux(of_user, self.sent.valid, self.i.valid & reply)),
            self.o.payload.eq(Mux(of_user, self.sent.payload, self.i.payload)),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [first.eq(self.i.payload.last), replied.eq(reply)]
        waits = self.i.valid & reply
        with m.If(~busy):
            m.d.sync += [
                busy.eq(waits | self.sent.valid),
                of_user.eq(self.sent.valid & (~of_user | ~waits)),
            ]
        with m.Elif(self.o.valid & self.o.ready & self.o.payload.last):
            m.d.sync += busy.eq(0)
        return m
