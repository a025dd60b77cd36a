"""Reads a build back as a netlist for simulation: bitstreams, routed and mapped circuits.

Cells of ECP5 and Gowin are read by rules written here. Yosys 0.70's own models of them, flattened
and compiled, show the same in every cycle once they are mended and completed, but:

- Reading takes Yosys and a C++ compiler, and the result runs slower. Tang Nano 9K: 0.4 s here, 37
  and 19 s there; 1.4 and 0.3 million cycles a second. ULX3S: 1 s here, 26 and 108 s there; 1.6 and
  0.1 million.
- They are less sure. They have no behaviour of block RAM, PLLs, clock buffers and the inputs of LUT
  RAM, nor what nextpnr leaves implied, and the routed carry chain of an ECP5 is dead in them
  (TRELLIS_COMB declares its output FCO anew). LUTs, carries and flip-flops, which they do have,
  are a quarter of the rules.
"""

from .asc import Bitstream, BitstreamError
from .chipdb import ChipDatabase, DatabaseError
from .ice40 import LUT_BITS, Constants, Ice40Netlist, LogicCell, extract
from .json_netlist import Cell, JsonNetlist, NetlistError, convert
from .netlist import bitstream_model, board_circuit, board_netlist, netlist_model, rtl_model
from .pins import BoardPin, Side, board_pins

__all__ = [
    "LUT_BITS",
    "Bitstream",
    "BitstreamError",
    "BoardPin",
    "Cell",
    "ChipDatabase",
    "Constants",
    "DatabaseError",
    "Ice40Netlist",
    "JsonNetlist",
    "LogicCell",
    "NetlistError",
    "Side",
    "bitstream_model",
    "board_circuit",
    "board_netlist",
    "board_pins",
    "convert",
    "extract",
    "netlist_model",
    "rtl_model",
]
