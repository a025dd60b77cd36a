"""Routes datagrams to their user, and everything that is sent to the builder."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..link import PacketKind, PacketWord

__all__ = ["PacketRouter"]


class PacketRouter(wiring.Component):
    """Routes requests of ARP, echoes and queries to the builder, datagrams to the user and back.

    Packets are never interleaved. Replies and the user's datagrams take turns, so that neither can
    keep the other from the line.

    Latency: a packet of ``received`` 1 cycle, of ``sent`` 1, of a reply 2. Throughput: a word a
    cycle.
    """

    i: In(stream.Signature(PacketWord))
    """Packets that were received."""
    received: Out(stream.Signature(PacketWord))
    """Datagrams to the user."""
    sent: In(stream.Signature(PacketWord))
    """Datagrams from the user."""
    o: Out(stream.Signature(PacketWord))
    """Packets to build."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # A register, because all that the user does with a word would follow its kind.
        known = Signal()  # `reply` is the kind of the packet at `i`
        reply = Signal()
        busy = Signal()
        of_user = Signal()  # whose turn it is, while a packet is routed and after it
        kind: Any = data.View(PacketKind, self.i.payload.data[: PacketKind.as_shape().size])
        waits = self.i.valid & known & reply
        replies = Signal()
        m.d.comb += [
            self.received.payload.eq(self.i.payload),
            self.received.valid.eq(self.i.valid & known & ~reply),
            replies.eq(self.o.ready & busy & ~of_user),
            self.i.ready.eq(known & Mux(reply, replies, self.received.ready)),
            self.sent.ready.eq(self.o.ready & busy & of_user),
            self.o.valid.eq(busy & Mux(of_user, self.sent.valid, waits)),
            self.o.payload.eq(Mux(of_user, self.sent.payload, self.i.payload)),
        ]
        with m.If(~known):
            m.d.sync += [known.eq(self.i.valid), reply.eq(kind.arp | kind.echo | kind.query)]
        with m.Elif(self.i.valid & self.i.ready & self.i.payload.last):
            m.d.sync += known.eq(0)
        with m.If(~busy):
            m.d.sync += [
                busy.eq(waits | self.sent.valid),
                of_user.eq(self.sent.valid & (~of_user | ~waits)),
            ]
        with m.Elif(self.o.valid & self.o.ready & self.o.payload.last):
            m.d.sync += busy.eq(0)
        return m
