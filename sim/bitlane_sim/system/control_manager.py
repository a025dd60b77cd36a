"""An AXI4-Lite manager that does one access at a time for the host. Knows no registers."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_rtl.bus import Axi4Lite


class ControlAccess(wiring.Signature):
    """An access to the control window, seen from whoever wants it.

    Members
    -------
    start : ``Out(1)``
        Begin an access; has an effect only while none is under way.
    write, address, data : ``Out(1)``, ``Out(14)``, ``Out(32)``
        What to do; sampled with ``start``.
    done : ``In(1)``
        High in the cycle in which the access ends.
    answer, response : ``In(32)``, ``In(2)``
        From the cycle after ``done`` until the next one: the word that was read, and the bus's
        response.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": Out(1),
                "write": Out(1),
                "address": Out(14),
                "data": Out(32),
                "done": In(1),
                "answer": In(32),
                "response": In(2),
            }
        )


class ControlManager(wiring.Component):
    """Turns accesses into AXI4-Lite transactions.

    Members
    -------
    access : ``In(ControlAccess())``
    axil : ``Out(Axi4Lite())``

    Latency: VALID of the address, and of the data of a write, rises 1 cycle after ``start``.
    """

    access: Any
    axil: Any

    def __init__(self) -> None:
        super().__init__({"access": In(ControlAccess()), "axil": Out(Axi4Lite())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        access, axil = self.access, self.axil
        busy = Signal()
        m.d.comb += [
            axil.wstrb.eq(0b1111),
            axil.bready.eq(1),
            axil.rready.eq(1),
            access.done.eq(busy & (axil.bvalid | axil.rvalid)),
        ]
        for channel in ("aw", "w", "ar"):
            valid, ready = getattr(axil, f"{channel}valid"), getattr(axil, f"{channel}ready")
            with m.If(ready):
                m.d.sync += valid.eq(0)
        with m.If(access.done):
            m.d.sync += busy.eq(0)
            with m.If(axil.bvalid):
                m.d.sync += access.response.eq(axil.bresp)
            with m.Else():
                m.d.sync += [access.response.eq(axil.rresp), access.answer.eq(axil.rdata)]
        with m.If(access.start & ~busy):
            m.d.sync += [
                busy.eq(1),
                axil.awaddr.eq(access.address),
                axil.araddr.eq(access.address),
                axil.wdata.eq(access.data),
                axil.awvalid.eq(access.write),
                axil.wvalid.eq(access.write),
                axil.arvalid.eq(~access.write),
            ]
        return m
