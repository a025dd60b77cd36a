"""Adapters from the engine's ports to AXI and to memories: single-port, banked and SDRAM."""
