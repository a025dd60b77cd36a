"""The native memory port that the engine speaks, and bus adapters translate.

Requests are bursts of whole beats. A burst never crosses a block of ``abi.BEATS_PER_BLOCK`` beats,
so it never crosses 4 KiB (AXI4 A3.4.1) for data widths up to 512 bits. Answers come in the order of
the requests. All members are ``amaranth.lib.stream`` streams: ``valid`` never waits for ``ready``
and a payload stays until it is taken.
"""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import BEATS_PER_BLOCK

__all__ = ["ReadPort", "WritePort", "read_data", "request", "write_data"]


def request(address_width: int) -> data.StructLayout:
    """Layout of a burst request.

    ``address`` in bytes, a multiple of the beat; ``length`` in beats, less one.
    """
    return data.StructLayout({"address": address_width, "length": ceil_log2(BEATS_PER_BLOCK)})


def read_data(data_width: int) -> data.StructLayout:
    """Layout of a beat that was read: ``last`` ends its burst, ``error`` voids ``data``."""
    return data.StructLayout({"data": data_width, "last": 1, "error": 1})


def write_data(data_width: int) -> data.StructLayout:
    """Layout of a beat to write; bit ``i`` of ``strobe`` enables byte ``i``."""
    return data.StructLayout({"data": data_width, "strobe": data_width // 8, "last": 1})


class ReadPort(wiring.Signature):
    """Signature of a read port, seen from the engine.

    Members
    -------
    request : ``Out(stream.Signature(request(address_width)))``
        Bursts to read.
    data : ``In(stream.Signature(read_data(data_width)))``
        Their beats, in order.
    """

    def __init__(self, address_width: int, data_width: int) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(request(address_width))),
                "data": In(stream.Signature(read_data(data_width))),
            }
        )


class WritePort(wiring.Signature):
    """Signature of a write port, seen from the engine.

    Members
    -------
    request : ``Out(stream.Signature(request(address_width)))``
        Bursts to write. If earlier ones are not taken, beats may come before their burst
        (AXI4 A3.3.1).
    data : ``Out(stream.Signature(write_data(data_width)))``
        Their beats, in order.
    response : ``In(stream.Signature(1))``
        One a burst, in order; 1 is an error.
    """

    def __init__(self, address_width: int, data_width: int) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(request(address_width))),
                "data": Out(stream.Signature(write_data(data_width))),
                "response": In(stream.Signature(1)),
            }
        )
