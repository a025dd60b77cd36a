"""The engine with AXI4 ports, for a system on chip. It consists of wires only."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .bus import (
    Axi4,
    Axi4Lite,
    Axi4LiteControl,
    Axi4ReadManager,
    Axi4WriteManager,
    join_channels,
)
from .configuration import Configuration
from .engine import Engine

__all__ = ["Core"]


class Core(wiring.Component):
    """An `Engine` with AXI4 managers for its memory and an AXI4-Lite subordinate for its control.

    Parameters
    ----------
    configuration : Configuration
    engine : Engine, optional
        The engine to use, for a caller that observes it. It must have this configuration.

    Latency and throughput: those of `Engine`; the adapters add no cycle. No combinational path
    leads from an input to an output (A3.1.1).
    """

    m_axi: Any
    """Reads of A, and of B if there is one read port; all writes."""
    m_axi_b: Any
    """Reads of B; only with two read ports and an operation of two operands."""
    s_axil: Any
    """The control window, see `abi`."""
    irq: Signal
    """High while an enabled interrupt is pending."""

    def __init__(self, configuration: Configuration, engine: Engine | None = None) -> None:
        self.configuration = configuration
        self._engine = engine
        width, data_width = configuration.address_width, configuration.data_width
        self._two = configuration.two_ports
        super().__init__(
            {
                "m_axi": Out(Axi4(width, data_width)),
                **({"m_axi_b": Out(Axi4(width, data_width, write=False))} if self._two else {}),
                "s_axil": In(Axi4Lite()),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        widths = self.configuration.address_width, self.configuration.data_width
        m.submodules.engine = engine = self._engine or Engine(self.configuration)
        m.submodules.control = control = Axi4LiteControl()
        m.submodules.read_a = read_a = Axi4ReadManager(*widths)
        m.submodules.write = write = Axi4WriteManager(*widths)
        wiring.connect(m, wiring.flipped(self.s_axil), control.bus)
        wiring.connect(m, control.control, engine.control)
        wiring.connect(m, engine.read_a, read_a.port)
        wiring.connect(m, engine.write, write.port)
        join_channels(m, read_a.axi, self.m_axi)
        join_channels(m, write.axi, self.m_axi)
        if self._two:
            m.submodules.read_b = read_b = Axi4ReadManager(*widths)
            wiring.connect(m, engine.read_b, read_b.port)
            join_channels(m, read_b.axi, self.m_axi_b)
        m.d.comb += self.irq.eq(engine.irq)
        return m
