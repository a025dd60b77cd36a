"""Signature of a byte-wide memory port."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ByteAccess"]


class ByteAccess(wiring.Signature):
    """Signature of a byte-wide memory port, seen from the user of the memory.

    An access takes place in a cycle in which ``enable`` and ``ready`` are 1. Until then the user
    must hold ``enable`` at 1 and its other outputs stable.

    Parameters
    ----------
    address_width
        Width of ``address``, in bits.

    Members
    -------
    address : ``Out(address_width)``
        Byte address.
    enable : ``Out(1)``
    write : ``Out(1)``
        1 for a write of ``write_data``, 0 for a read.
    write_data : ``Out(8)``
    ready : ``In(1)``
        May depend combinationally on the user's outputs.
    read_data : ``In(8)``
        Valid in the cycle after a read, undefined in all others.
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
