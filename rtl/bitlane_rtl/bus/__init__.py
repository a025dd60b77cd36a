"""Adapters from the engine's ports to AXI and to memories: single-port, banked and SDRAM."""

from .axi4 import BURST_INCR, Axi4, Axi4ReadManager, Axi4WriteManager, join_channels
from .axi4_lite import OKAY, SLVERR, Axi4Lite, Axi4LiteControl
from .axi4_stream import Axi4Stream
from .banks import BankedMemory
from .sdram import SdramMemory, SdramPins
from .shared_sram import SharedSram
from .sram import SramPort
from .storage import BlockRam, SinglePortRam
from .whole_beats import Axi4WholeBeats, WholeBeats
from .wishbone import BURSTS_PER_TURN, Wishbone, WishboneControl, WishboneManager

__all__ = [
    "BURSTS_PER_TURN",
    "BURST_INCR",
    "OKAY",
    "SLVERR",
    "Axi4",
    "Axi4Lite",
    "Axi4LiteControl",
    "Axi4ReadManager",
    "Axi4Stream",
    "Axi4WholeBeats",
    "Axi4WriteManager",
    "BankedMemory",
    "BlockRam",
    "SdramMemory",
    "SdramPins",
    "SharedSram",
    "SinglePortRam",
    "SramPort",
    "WholeBeats",
    "Wishbone",
    "WishboneControl",
    "WishboneManager",
    "join_channels",
]
