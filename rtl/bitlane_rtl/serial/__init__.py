"""From a UART's pins to memory and control window, and back. `abi.frames` is the contract."""

from .complaint_inserter import ComplaintInserter
from .receiver import RequestReceiver
from .serial_bridge import SerialBridge
from .transmitter import AnswerTransmitter
from .uart import UartReceiver, UartTransmitter

__all__ = [
    "AnswerTransmitter",
    "ComplaintInserter",
    "RequestReceiver",
    "SerialBridge",
    "UartReceiver",
    "UartTransmitter",
]
