"""A memory that is accessed a byte at a time. A signature only."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ByteAccess"]


class ByteAccess(wiring.Signature):
    """Signature of a memory of bytes, seen from its user.

    An access takes place in a cycle in which both ``enable`` and ``ready`` are 1. Once ``enable``
    is 1, it and all else that the user drives stay as they are until then.

    Parameters
    ----------
    address_width
        In bits.

    Members
    -------
    address : ``Out(address_width)``
        Byte to access.
    enable : ``Out(1)``
    write : ``Out(1)``
        Write ``write_data``; else read.
    write_data : ``Out(8)``
    ready : ``In(1)``
        May depend on all that the user drives.
    read_data : ``In(8)``
        What was read, in the cycle after the access; undefined in all other cycles.
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
