"""The engine with Wishbone ports, for a system on chip. It consists of wires only."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .bus import Wishbone, WishboneControl, WishboneManager
from .configuration import Configuration
from .engine import Engine
from .ports import CONTROL_ADDRESS_WIDTH

__all__ = ["WishboneCore"]


class WishboneCore(wiring.Component):
    """An `Engine` with a Wishbone manager for its memory and a subordinate for its control.

    Parameters
    ----------
    configuration : Configuration
        With one read port, which A and B share, because the bus has one channel for requests.
    in_flight : int
        Highest number of beats in flight, see `WishboneManager`.

    Latency and throughput: those of `Engine` behind `WishboneManager`, which all streams share. No
    combinational path leads from an input to an output.

    Raises ``ValueError`` with two read ports, or if ``in_flight`` is outside its range.
    """

    wbm: Any
    """All reads and writes of the memory."""
    wbs: Any
    """The control window, see `abi`."""
    irq: Signal
    """High while an enabled interrupt is pending."""

    def __init__(self, configuration: Configuration, in_flight: int = 16) -> None:
        if configuration.two_ports:
            raise ValueError("read_ports: 2; expected 1, because Wishbone has one request channel")
        self.configuration = configuration
        widths = configuration.address_width, configuration.data_width
        self._manager = WishboneManager(*widths, in_flight, block_ram=configuration.block_ram)
        super().__init__(
            {
                "wbm": Out(Wishbone(*widths)),
                "wbs": In(Wishbone(CONTROL_ADDRESS_WIDTH, 32)),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.engine = engine = Engine(self.configuration)
        m.submodules.control = control = WishboneControl()
        m.submodules.manager = manager = self._manager
        wiring.connect(m, wiring.flipped(self.wbs), control.bus)
        wiring.connect(m, control.control, engine.control)
        wiring.connect(m, engine.read_a, manager.read)
        wiring.connect(m, engine.write, manager.write)
        wiring.connect(m, manager.bus, wiring.flipped(self.wbm))
        m.d.comb += self.irq.eq(engine.irq)
        return m
