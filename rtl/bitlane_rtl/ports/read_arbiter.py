"""An arbiter that shares a read port between two readers."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..streams import Fifo
from .signatures import ReadPort

__all__ = ["ReadArbiter", "round_robin"]


def round_robin(m: Module, first: Value, second: Value, taken: Value | int) -> Signal:
    """Arbitrate between two requests: return 0 to grant the first, 1 to grant the second.

    A single request is granted; of two, the one that was not accepted last (round robin). The grant
    does not change until ``taken`` is 1 if requests stay asserted: a stream's payload must not
    change while it is valid.
    """
    prefer_second = Signal()
    choice = Signal()
    m.d.comb += choice.eq(second & (prefer_second | ~first))
    with m.If(first | second):
        m.d.sync += prefer_second.eq(choice ^ taken)
    return choice


class ReadArbiter(wiring.Component):
    """Grants a read port to two readers, burst by burst.

    A single request is granted at once, two requests in round robin. Each reader must accept its
    beats without waiting for the other reader, so it may only request beats that it can buffer.
    The memory may accept a request after its beats, as `SramPort` does.

    Parameters
    ----------
    address_width, data_width
        Widths of all ports, in bits.
    bursts
        Highest number of bursts in flight, a power of two, 2 or more.
    block_ram
        Store the order of the bursts in block RAM (see `fifo.Fifo`).

    Members
    -------
    a, b
        The readers.
    port
        The memory.

    Latency: 0 cycles each way. Beats can pass from the cycle after their request, with
    ``block_ram`` from the second cycle after.
    Throughput: a request and a beat per cycle. If both readers always request, each gets every
    second burst. Undefined: beats without a request.
    Area on ECP5 (32 address bits, 16 bursts): 64 LUT4, 3 CCU2C, 16 flip-flops and a LUT RAM, at 200
    MHz on ECP5-6.
    Paths through it: from ``request.valid`` of either reader to the memory's address, and from
    ``data.ready`` of either to the memory's ``data.ready``.

    Raises ``ValueError`` if ``bursts`` is not a power of two.
    """

    def __init__(
        self, address_width: int, data_width: int, bursts: int, *, block_ram: bool = False
    ) -> None:
        signature = ReadPort(address_width, data_width)
        self._order = Fifo(1, bursts, block_ram=block_ram)
        super().__init__({"a": In(signature), "b": In(signature), "port": Out(signature)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.order = order = self._order
        a, b, port = self.a, self.b, self.port

        taken = Signal()
        shown = Signal()  # the request at the port was there in the cycle before
        requested = a.request.valid | b.request.valid
        grant_b = round_robin(m, a.request.valid, b.request.valid, taken)
        m.d.comb += [
            port.request.valid.eq(requested & (order.i.ready | shown)),
            port.request.payload.eq(Mux(grant_b, b.request.payload, a.request.payload)),
            taken.eq(port.request.ready & (order.i.ready | shown)),
            a.request.ready.eq(taken & ~grant_b),
            b.request.ready.eq(taken & grant_b),
            # Not when the request is accepted: its beats may come first.
            order.i.valid.eq(requested & ~shown),
            order.i.payload.eq(grant_b),
        ]
        m.d.sync += shown.eq(port.request.valid & ~port.request.ready)
        to_b = order.o.payload
        m.d.comb += [
            a.data.payload.eq(port.data.payload),
            b.data.payload.eq(port.data.payload),
            a.data.valid.eq(port.data.valid & order.o.valid & ~to_b),
            b.data.valid.eq(port.data.valid & order.o.valid & to_b),
            port.data.ready.eq(order.o.valid & Mux(to_b, b.data.ready, a.data.ready)),
            order.o.ready.eq(port.data.valid & port.data.ready & port.data.payload.last),
        ]
        return m
