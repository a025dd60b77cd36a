"""`bitlane export`: the AXI4 core as plain Verilog, for systems that others build."""

from .command import add_export

__all__ = ["add_export"]
