"""Signature of the control port: 32-bit registers without back-pressure."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import CONTROL_SIZE

__all__ = ["CONTROL_ADDRESS_WIDTH", "ControlPort"]

CONTROL_ADDRESS_WIDTH = ceil_log2(CONTROL_SIZE)


class ControlPort(wiring.Signature):
    """Signature of a control port, seen from the controlled circuit.

    In every cycle one word may be read or written; ``read`` and ``write`` are never both 1.

    Members
    -------
    address : ``In(14)``
        Byte address in the control window, a multiple of 4.
    write : ``In(1)``
        Write ``write_data``, all 32 bits, in this cycle.
    write_data : ``In(32)``
    read : ``In(1)``
        Read in this cycle.
    read_data : ``Out(32)``
        Valid in the cycle after ``read``, undefined in all others.
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
