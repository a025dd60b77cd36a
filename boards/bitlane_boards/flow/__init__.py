"""From a board to its bitstream: circuit, pins, clock, and the tools of each FPGA family."""

from .carries import shorten
from .families import FLOWS, YOSYS, Cells, Tool

__all__ = ["FLOWS", "YOSYS", "Cells", "Tool", "shorten"]
