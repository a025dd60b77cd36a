"""The bit unit between streams of packets, without memory or commands: see `unit`.

Only plain data is imported here: exports read their options where Amaranth is not installed.
"""

from ..stream_configuration import PacketReduction, StreamConfiguration

__all__ = ["PacketReduction", "StreamConfiguration"]
