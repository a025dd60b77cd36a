"""From a board to its bitstream: circuit, pins, clock, and the tools of each FPGA family."""

from .carries import shorten
from .families import FLOWS, YOSYS, Cells, Tool
from .tools import ToolError, Usage, run_tool, silent

__all__ = ["FLOWS", "YOSYS", "Cells", "Tool", "ToolError", "Usage", "run_tool", "shorten", "silent"]
