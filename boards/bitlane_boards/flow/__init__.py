"""From a board to its bitstream: circuit, pins, clock, and the tools of each FPGA family.

Names that need Amaranth or cppsim are imported when they are first used: whoever flashes a board
needs neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .carries import bare, shorten
from .families import FLOWS, YOSYS, Cells, Tool

if TYPE_CHECKING:
    from .platform import expect_clock, leds, load_platform
    from .pll import ECP5, GW1N_9C, ICE40, Pll, PllError, settings
    from .rgmii import RgmiiPort
    from .seeds import Routed, Synthesised, best_of, place
    from .tools import ToolError, Usage, run_tool, silent
    from .top import BURSTS, SINGLE_PORT, Top

__all__ = [
    "BURSTS",
    "ECP5",
    "FLOWS",
    "GW1N_9C",
    "ICE40",
    "SINGLE_PORT",
    "YOSYS",
    "Cells",
    "Pll",
    "PllError",
    "RgmiiPort",
    "Routed",
    "Synthesised",
    "Tool",
    "ToolError",
    "Top",
    "Usage",
    "bare",
    "best_of",
    "expect_clock",
    "leds",
    "load_platform",
    "place",
    "run_tool",
    "settings",
    "shorten",
    "silent",
]

_MODULES = {
    "BURSTS": "top",
    "ECP5": "pll",
    "GW1N_9C": "pll",
    "ICE40": "pll",
    "Pll": "pll",
    "PllError": "pll",
    "RgmiiPort": "rgmii",
    "Routed": "seeds",
    "SINGLE_PORT": "top",
    "Synthesised": "seeds",
    "ToolError": "tools",
    "Top": "top",
    "Usage": "tools",
    "best_of": "seeds",
    "expect_clock": "platform",
    "leds": "platform",
    "load_platform": "platform",
    "place": "seeds",
    "run_tool": "tools",
    "settings": "pll",
    "silent": "tools",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
