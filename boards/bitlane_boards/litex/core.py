"""The exported core as a LiteX module: managers, control window, and interrupt. Knows no SoC."""

import hashlib
from pathlib import Path
from typing import Any

from litex.gen import ClockSignal, Instance, LiteXModule, ResetSignal
from litex.soc.interconnect import axi
from litex.soc.interconnect.csr import CSRStatus
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel

from bitlane_rtl import abi
from bitlane_rtl.configuration import Configuration
from bitlane_sim.builds import CACHE
from bitlane_sim.export import export

__all__ = ["Bitlane"]

_NAME = "bitlane_core"
"""The module that the exported Verilog defines."""

_ALL = ("aw", "w", "b", "ar", "r")
_WINDOW_BITS = (abi.CONTROL_SIZE - 1).bit_length()


class Bitlane(LiteXModule):
    """The core between AXI4 managers and an AXI4-Lite control window.

    Parameters
    ----------
    platform : GenericPlatform
        The platform to which the core's Verilog is added.
    configuration : Configuration
        The core to export, with memory addresses of the SoC's bus.

    Attributes
    ----------
    managers : list of AXIInterface
        The core's managers, ``configuration.data_width`` bits wide. The second, if there is one,
        only reads.
    control : AXILiteInterface
        The control window, 32 bits wide, of ``abi.CONTROL_SIZE`` bytes.
    ev : EventManager
        The interrupt, as the level ``irq``.
    build : CSRStatus
        The number of this build of the SoC, which whoever adds the core drives.
    verilog : Path
        The core's Verilog.
    """

    def __init__(self, platform: Any, configuration: Configuration) -> None:
        self.configuration = configuration
        managers = [("m_axi", _ALL), ("m_axi_b", ("ar", "r"))][: 1 + configuration.two_ports]
        self.managers = [
            axi.AXIInterface(data_width=configuration.data_width, address_width=32, id_width=1)
            for _ in managers
        ]
        self.control = axi.AXILiteInterface(data_width=32, address_width=32)

        self.ev = EventManager()
        self.ev.irq_level = EventSourceLevel(name="irq", description="The core's interrupt line.")
        self.ev.finalize()

        self.build = CSRStatus(32, description="Number of this build of the SoC.")

        # # #

        ports = {"o_irq": self.ev.irq_level.trigger}
        for bus, (prefix, channels) in zip(self.managers, managers, strict=True):
            ports |= _ports(bus, prefix, channels, manager=True)
        ports |= _ports(self.control, "s_axil", _ALL, manager=False)
        ports |= {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        self.specials += Instance(_NAME, **ports)
        self.verilog = export_verilog(configuration)
        platform.add_source(str(self.verilog), copy=True)


def export_verilog(configuration: Configuration) -> Path:
    """Return a file with the Verilog of the core, named after what is in it.

    Raises ``ValueError`` for a configuration that cannot be built.
    """
    text, page = export(configuration, _NAME)

    def write(folder: Path) -> None:
        (folder / f"{_NAME}.v").write_text(text, encoding="utf-8")
        (folder / f"{_NAME}.md").write_text(page, encoding="utf-8")

    key = hashlib.sha256(text.encode()).hexdigest()
    return CACHE.cached("litex", key, write) / f"{_NAME}.v"


def _ports(bus: Any, prefix: str, channels: tuple[str, ...], *, manager: bool) -> dict[str, Any]:
    """Connect the ports ``prefix`` of an instance to those ``channels`` of ``bus``."""
    ports = {}
    for name in channels:
        channel = getattr(bus, name)
        forth, back = ("o", "i") if manager == (name in ("aw", "w", "ar")) else ("i", "o")
        fields = {"valid": channel.valid}
        fields |= {field: getattr(channel, field) for field, *_ in channel.payload.layout}
        if isinstance(bus, axi.AXIInterface):
            fields |= {"last": channel.last} if name in ("w", "r") else {}
            fields |= {"id": channel.id} if name != "w" else {}
        elif name in ("aw", "ar"):
            fields["addr"] = channel.addr[:_WINDOW_BITS]
        for field, signal in fields.items():
            ports[f"{forth}_{prefix}_{name}{field}"] = signal
        ports[f"{back}_{prefix}_{name}ready"] = channel.ready
    return ports
