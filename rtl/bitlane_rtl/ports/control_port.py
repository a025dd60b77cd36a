"""The control side's bus: 32-bit registers, without back-pressure. A signature only."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..abi import CONTROL_SIZE

__all__ = ["CONTROL_ADDRESS_WIDTH", "ControlPort"]

CONTROL_ADDRESS_WIDTH = (CONTROL_SIZE - 1).bit_length()


class ControlPort(wiring.Signature):
    """Signature of a control port, seen from the circuit that is controlled.

    At most one of ``read`` and ``write`` is 1 in a cycle; either may be 1 in every cycle. Words are
    read and written whole.

    Members
    -------
    address : ``In(14)``
        Byte address in the control window, a multiple of 4.
    write : ``In(1)``
        Write ``write_data`` in this cycle.
    write_data : ``In(32)``
    read : ``In(1)``
        Read in this cycle.
    read_data : ``Out(32)``
        What was read, in the cycle after ``read``; undefined in all other cycles.
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
