"""A Wishbone core in the place of the AXI4 core of the simulated system, behind two bridges.

So the system's memory, with its stalls and faults, and its host serve Wishbone. The bridges are
simple: a request of Wishbone is a burst of one beat, and the host makes one access at a time.
"""

from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from bitlane_rtl.bus.axi4 import BURST_INCR, Axi4
from bitlane_rtl.bus.axi4_lite import SLVERR, Axi4Lite
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.engine import Engine
from bitlane_rtl.wishbone_core import WishboneCore
from bitlane_sim.device.simulator import Simulator, load_evaluator


class BridgedCore(wiring.Component):
    """A `WishboneCore` with the ports of a `Core` with one read port."""

    m_axi: Any
    s_axil: Any
    irq: Signal

    def __init__(self, configuration: Configuration, engine: Engine | None = None) -> None:
        assert engine is None, "a Wishbone core is not recorded"
        self._configuration = configuration
        super().__init__(
            {
                "m_axi": Out(Axi4(configuration.address_width, configuration.data_width)),
                "s_axil": In(Axi4Lite()),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = WishboneCore(self._configuration)
        m.d.comb += self.irq.eq(core.irq)
        self._memory(m, core.wbm)
        self._control(m, core.wbs)
        return m

    def _memory(self, m: Module, bus: Any) -> None:
        """Make each request a burst of one beat, and each answer of either kind ACK or ERR."""
        axi = self.m_axi
        size = exact_log2(self._configuration.data_bytes)
        writes, reads = Signal(), Signal()
        m.d.comb += [writes.eq(bus.stb & bus.we), reads.eq(bus.stb & ~bus.we)]
        for name in ("aw", "ar"):
            m.d.comb += [
                getattr(axi, f"{name}addr").eq(bus.adr),
                getattr(axi, f"{name}size").eq(size),
                getattr(axi, f"{name}burst").eq(BURST_INCR),
            ]
        accepted = {}
        for name in ("aw", "w"):
            valid, ready = getattr(axi, f"{name}valid"), getattr(axi, f"{name}ready")
            done = Signal(name=f"{name}_done")
            accepted[name] = done | ready
            m.d.comb += valid.eq(writes & ~done)
            m.d.sync += done.eq(bus.stall & (done | (valid & ready)))
        write_accepted = accepted["aw"] & accepted["w"]
        failed = (axi.bvalid & axi.bresp[1]) | (axi.rvalid & axi.rresp[1])
        m.d.comb += [
            axi.arvalid.eq(reads),
            axi.wdata.eq(bus.dat_w),
            axi.wstrb.eq(bus.sel),
            axi.wlast.eq(1),
            axi.bready.eq(1),
            axi.rready.eq(1),
            bus.stall.eq((writes & ~write_accepted) | (reads & ~axi.arready)),
            bus.ack.eq((axi.bvalid | axi.rvalid) & ~failed),
            bus.err.eq(failed),
            bus.dat_r.eq(axi.rdata),
        ]

    def _control(self, m: Module, bus: Any) -> None:
        """Make an access to the control window of each of the host's."""
        axil = self.s_axil
        waiting, ends = Signal(), Signal()
        accepted = bus.stb & ~bus.stall
        m.d.comb += [
            bus.stb.eq(~waiting & ((axil.awvalid & axil.wvalid) | axil.arvalid)),
            bus.cyc.eq(waiting | bus.stb),
            bus.we.eq(axil.awvalid),
            bus.sel.eq(axil.wstrb),
            bus.dat_w.eq(axil.wdata),
            axil.awready.eq(accepted & bus.we),
            axil.wready.eq(accepted & bus.we),
            axil.arready.eq(accepted & ~bus.we),
            ends.eq(waiting & (bus.ack | bus.err)),
            axil.rdata.eq(bus.dat_r),
        ]
        with m.If(bus.we):
            m.d.comb += bus.adr.eq(axil.awaddr)
        with m.Else():
            m.d.comb += bus.adr.eq(axil.araddr)
        wrote = Signal()
        with m.If(accepted):
            m.d.sync += [waiting.eq(1), wrote.eq(bus.we)]
        with m.Elif(ends):
            m.d.sync += waiting.eq(0)
        response = bus.err.replicate(2) & SLVERR
        m.d.comb += [
            axil.bvalid.eq(ends & wrote),
            axil.rvalid.eq(ends & ~wrote),
            axil.bresp.eq(response),
            axil.rresp.eq(response),
        ]


def wishbone_simulator(configuration: Configuration) -> Simulator:
    """Return a compiled simulator of the system with a Wishbone core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitlane_sim.system.system.Core", BridgedCore)
        return Simulator(configuration, load_evaluator("compiled"))
