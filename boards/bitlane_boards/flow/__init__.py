"""From a board to its bitstream: circuit, pins, clock, and the tools of each FPGA family."""
