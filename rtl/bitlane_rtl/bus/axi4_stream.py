"""AXI4-Stream (ARM IHI 0051): the signature of a bus. It converts nothing."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Axi4Stream"]


class Axi4Stream(wiring.Signature):
    """Signature of an AXI4-Stream bus of bytes, seen from the transmitter.

    TKEEP marks the bytes of the packet. TSTRB is left out: position bytes are not supported.

    Members
    -------
    tdata, tkeep, tlast
        A beat of the packet.
    tuser
        Exists only if ``user_width`` is not 0.
    tvalid, tready
        The handshake.
    """

    def __init__(self, data_width: int, user_width: int = 0) -> None:
        super().__init__(
            {
                "tdata": Out(data_width),
                "tkeep": Out(data_width // 8),
                "tlast": Out(1),
                **({"tuser": Out(user_width)} if user_width else {}),
                "tvalid": Out(1),
                "tready": In(1),
            }
        )
