"""Bit-slice a circuit: each word holds one bit of all instances of a tile, gates work on words."""

from .cells import bits_of_cell, by_numbers
from .design import BitslicedDesign, BufferedWrite, bitslice
from .levels import LevelCall, Levels
from .network import AND, CARRY, ODD3, OR, SELECT, XOR, Gate, Network
from .phase import Call, Output, Phase

__all__ = [
    "AND",
    "CARRY",
    "ODD3",
    "OR",
    "SELECT",
    "XOR",
    "BitslicedDesign",
    "BufferedWrite",
    "Call",
    "Gate",
    "LevelCall",
    "Levels",
    "Network",
    "Output",
    "Phase",
    "bits_of_cell",
    "bitslice",
    "by_numbers",
]
