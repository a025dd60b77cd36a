"""Signatures of the engine's ports, independent of any bus, and arbiters that share a port."""

from .read_arbiter import ReadArbiter
from .signatures import CONTROL_ADDRESS_WIDTH, ControlPort, ReadPort, WordAccess, WritePort
from .write_arbiter import WriteArbiter

__all__ = [
    "CONTROL_ADDRESS_WIDTH",
    "ControlPort",
    "ReadArbiter",
    "ReadPort",
    "WordAccess",
    "WriteArbiter",
    "WritePort",
]
