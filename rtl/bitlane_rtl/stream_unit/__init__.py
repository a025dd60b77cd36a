"""The bit unit between streams of packets, without memory or commands: see `unit`."""

from ..stream_configuration import PacketReduction, StreamConfiguration
from .assembler import PacketAssembler
from .core import StreamCore
from .packets import PacketFlags
from .registers import FLAG_FIELDS, STREAM_IDENTITY, StreamRegisters, stream_registers
from .unit import StreamUnit

__all__ = [
    "FLAG_FIELDS",
    "STREAM_IDENTITY",
    "PacketAssembler",
    "PacketFlags",
    "PacketReduction",
    "StreamConfiguration",
    "StreamCore",
    "StreamRegisters",
    "StreamUnit",
    "stream_registers",
]
