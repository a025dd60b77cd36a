"""From a gigabit PHY's pins to datagrams, and back."""

from ..board_addresses import BoardAddresses
from .frame_parser import FrameParser
from .gmii import GAP_BYTES, PREAMBLE, PREAMBLE_BYTES, START_OF_FRAME, Gmii
from .line_status import LineStatus
from .mac_receiver import MacReceiver
from .mac_transmitter import MacTransmitter
from .network_bridge import NetworkBridge
from .packet_fifo import PacketFifo
from .rgmii import RgmiiReceiver, RgmiiTransmitter
from .udp_stack import UdpStack

__all__ = [
    "GAP_BYTES",
    "PREAMBLE",
    "PREAMBLE_BYTES",
    "START_OF_FRAME",
    "BoardAddresses",
    "FrameParser",
    "Gmii",
    "LineStatus",
    "MacReceiver",
    "MacTransmitter",
    "NetworkBridge",
    "PacketFifo",
    "RgmiiReceiver",
    "RgmiiTransmitter",
    "UdpStack",
]
