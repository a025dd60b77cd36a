"""The path from a command to bursts: loop nest, addresses, splitter. It accesses no memory."""

from .address_generator import AddressGenerator, StreamSetup
from .bursts import Burst, Span, Splitter
from .loop_nest import LoopNest, Step

__all__ = [
    "AddressGenerator",
    "Burst",
    "LoopNest",
    "Span",
    "Splitter",
    "Step",
    "StreamSetup",
]
