"""A byte-wide memory port."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ByteAccess"]


class ByteAccess(wiring.Signature):
    """Signature of a byte-wide memory port, seen from the user of the memory.

    An access takes place in a cycle in which ``enable`` and ``ready`` are 1. Until then all outputs
    must stay. ``ready`` may depend on them combinationally. ``read_data`` is valid only in the
    cycle after a read.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "address": Out(address_width),
                "enable": Out(1),
                "write": Out(1),
                "write_data": Out(8),
                "ready": In(1),
                "read_data": In(8),
            }
        )
