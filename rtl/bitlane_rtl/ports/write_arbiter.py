"""An arbiter that shares a write port between two writers."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..streams import Fifo
from .signatures import WritePort

__all__ = ["WriteArbiter"]


class WriteArbiter(wiring.Component):
    """Grants a write port to two writers, burst by burst.

    A writer holds the port until the request and all beats of its burst are accepted. Then the port
    passes to the other writer, if that one requests a burst. Beats wait until the request of their
    burst is valid.

    Parameters
    ----------
    address_width, data_width
        Widths of all ports, in bits.
    bursts
        Highest number of bursts whose responses are due, a power of two, 2 or more.

    Members
    -------
    a, b
        The writers.
    port
        The memory. It may accept a request before, between or after its beats.

    Latency: 0 cycles each way. A request of the writer that did not have the last burst waits for
    one cycle, if the other writer does not request, and otherwise for one burst of that writer,
    which takes as long as its beats do.
    Throughput: a beat per cycle, and a burst per cycle for bursts of one beat. If both writers
    always request, each gets every second burst.
    Undefined: a response before the cycle after its burst is complete.
    Area on ECP5 (23 address bits, 64 data bits, 16 bursts): 147 LUT4, 3 CCU2C, 17 flip-flops and a
    LUT RAM, at 187 MHz on ECP5-6.
    Paths through it: from ``request.valid`` of a writer to the memory's ``data.valid`` and the
    writer's ``data.ready``. The multiplexers are selected by a register.

    Raises ``ValueError`` if ``bursts`` is not a power of two.
    """

    def __init__(self, address_width: int, data_width: int, bursts: int) -> None:
        signature = WritePort(address_width, data_width)
        self._order = Fifo(1, bursts)
        super().__init__({"a": In(signature), "b": In(signature), "port": Out(signature)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.order = order = self._order
        a, b, port = self.a, self.b, self.port

        of_b = Signal()  # the writer that has the port
        asked = Signal()  # its request is accepted
        sent = Signal()  # all its beats are accepted
        requests, other = Signal(), Signal()
        asks, sends, ends = Signal(), Signal(), Signal()
        may_ask, may_send = Signal(), Signal()
        m.d.comb += [
            requests.eq(Mux(of_b, b.request.valid, a.request.valid)),
            other.eq(Mux(of_b, a.request.valid, b.request.valid)),
            may_ask.eq(~asked & order.i.ready),
            may_send.eq((asked | requests) & ~sent & order.i.ready),
            port.request.valid.eq(requests & may_ask),
            port.request.payload.eq(Mux(of_b, b.request.payload, a.request.payload)),
            port.data.valid.eq(Mux(of_b, b.data.valid, a.data.valid) & may_send),
            port.data.payload.eq(Mux(of_b, b.data.payload, a.data.payload)),
            asks.eq(asked | (port.request.valid & port.request.ready)),
            sends.eq(sent | (port.data.valid & port.data.ready & port.data.payload.last)),
            ends.eq(asks & sends),
            order.i.valid.eq(ends),
            order.i.payload.eq(of_b),
        ]
        m.d.sync += [
            asked.eq(asks & ~ends),
            sent.eq(sends & ~ends),
            of_b.eq(of_b ^ (other & (ends | ~(asked | requests)))),
        ]
        for writer, mine in ((a, ~of_b), (b, of_b)):
            m.d.comb += [
                writer.request.ready.eq(mine & may_ask & port.request.ready),
                writer.data.ready.eq(mine & may_send & port.data.ready),
            ]
        self._respond(m, order.o)
        return m

    def _respond(self, m: Module, order: Any) -> None:
        """Route each response to the writer of its burst."""
        for writer, mine in ((self.a, ~order.payload), (self.b, order.payload)):
            m.d.comb += [
                writer.response.valid.eq(self.port.response.valid & order.valid & mine),
                writer.response.payload.eq(self.port.response.payload),
            ]
        ready = Mux(order.payload, self.b.response.ready, self.a.response.ready)
        m.d.comb += [
            self.port.response.ready.eq(order.valid & ready),
            order.ready.eq(self.port.response.valid & self.port.response.ready),
        ]
