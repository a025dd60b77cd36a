"""The control port: 32-bit registers, without back-pressure."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import CONTROL_SIZE

__all__ = ["CONTROL_ADDRESS_WIDTH", "ControlPort"]

CONTROL_ADDRESS_WIDTH = ceil_log2(CONTROL_SIZE)


class ControlPort(wiring.Signature):
    """Signature of a control port, seen from the controlled circuit.

    A word is read or written in each cycle with ``read`` or ``write``, which are never both 1.
    ``address`` counts bytes and is a multiple of 4. ``read_data`` is valid only in the cycle after
    ``read``.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "address": In(CONTROL_ADDRESS_WIDTH),
                "write": In(1),
                "write_data": In(32),
                "read": In(1),
                "read_data": Out(32),
            }
        )
