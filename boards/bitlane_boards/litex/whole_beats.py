"""The circuit that writes whole beats only, as a LiteX module, for memories without byte masks."""

import hashlib
from pathlib import Path
from typing import Any

from litex.gen import ClockSignal, Instance, LiteXModule, ResetSignal
from litex.soc.interconnect import axi

from bitlane_rtl.bus import Axi4WholeBeats
from bitlane_sim.builds import CACHE
from bitlane_sim.export.backend import conventional_ports, verilog

__all__ = ["WholeBeatsModule"]

_ADDRESS_BITS = 32


class WholeBeatsModule(LiteXModule):
    """A manager's writes, of which only whole beats reach the memory.

    Parameters
    ----------
    platform : GenericPlatform
        The platform to which the Verilog is added.
    manager : AXIInterface
        The bus of the manager; its channels AW, W and B are connected.

    Attributes
    ----------
    memory : AXIInterface
        The bus towards the memory, as wide as ``manager``. It reads partial beats.
    """

    def __init__(self, platform: Any, manager: Any) -> None:
        self.memory = axi.AXIInterface(
            data_width=manager.data_width, address_width=_ADDRESS_BITS, id_width=1
        )

        # # #

        name = f"bitlane_whole_beats_{manager.data_width}"
        circuit = Axi4WholeBeats(_ADDRESS_BITS, manager.data_width)
        ports: dict[str, Any] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for bus, side in ((manager, "s_axi"), (self.memory, "m_axi")):
            for member in getattr(circuit, side).signature.members:
                channel = member[:2] if member[0] == "a" else member[0]
                signal = getattr(getattr(bus, channel), member.removeprefix(channel))
                from_bus = (side == "s_axi") == (channel in ("aw", "w", "ar"))
                inward = from_bus != member.endswith("ready")
                ports[f"{'i' if inward else 'o'}_{side}_{member}"] = signal
        self.specials += Instance(name, **ports)
        platform.add_source(str(_verilog_file(circuit, name)), copy=True)


def _verilog_file(circuit: Axi4WholeBeats, name: str) -> Path:
    """Return a file with the Verilog of ``circuit`` as the module ``name``."""
    text = verilog(circuit, name, conventional_ports(circuit))

    def write(folder: Path) -> None:
        (folder / f"{name}.v").write_text(text, encoding="utf-8")

    key = hashlib.sha256(text.encode()).hexdigest()
    return CACHE.cached("litex", key, write) / f"{name}.v"
