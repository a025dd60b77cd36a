"""Signatures of the engine's ports, independent of any bus: control, and memory.

A memory request is a burst of whole beats. It never crosses a block of ``abi.BEATS_PER_BLOCK``
beats, so it never crosses 4 KiB (AXI4 A3.4.1) at any data width. Beats and responses arrive in the
order of the requests. All members of memory ports are ``amaranth.lib.stream`` streams: ``valid``
never waits for ``ready``, and a payload stays until it is accepted.
"""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..abi import BEATS_PER_BLOCK, CONTROL_SIZE

__all__ = [
    "CONTROL_ADDRESS_WIDTH",
    "ControlPort",
    "ReadPort",
    "WordAccess",
    "WritePort",
    "memory_members",
    "read_data",
    "request",
    "write_data",
]

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


class WordAccess(wiring.Signature):
    """Signature of a word-wide memory port, seen from the user of the memory.

    An access takes place in a cycle in which ``enable`` and ``ready`` are 1. Until then all outputs
    must stay. ``ready`` may depend on them combinationally. The bytes that ``strobe`` enables are
    written; if it is 0, the word is read. The lowest 2 bits of ``address`` are ignored.
    ``read_data`` is valid only in the cycle after a read.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "address": Out(address_width),
                "enable": Out(1),
                "strobe": Out(4),
                "write_data": Out(32),
                "ready": In(1),
                "read_data": In(32),
            }
        )


def request(address_width: int) -> data.StructLayout:
    """Return the layout of a burst request.

    ``address`` counts bytes and is a multiple of the beat. ``length`` is the number of beats less
    one.
    """
    return data.StructLayout({"address": address_width, "length": ceil_log2(BEATS_PER_BLOCK)})


def read_data(data_width: int) -> data.StructLayout:
    """Return the layout of a beat read: ``last`` ends its burst, ``error`` voids ``data``."""
    return data.StructLayout({"data": data_width, "last": 1, "error": 1})


def write_data(data_width: int) -> data.StructLayout:
    """Return the layout of a beat to write; bit ``i`` of ``strobe`` enables byte ``i``."""
    return data.StructLayout({"data": data_width, "strobe": data_width // 8, "last": 1})


class ReadPort(wiring.Signature):
    """Signature of a read port, seen from the engine.

    Members
    -------
    request
        Bursts to read.
    data
        Beats of the bursts, in order.
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
    request
        Bursts to write. A burst's beats may come before its request is accepted (AXI4 A3.3.1).
    data
        Beats of the bursts, in order.
    response
        One response per burst, in order; 1 is an error.
    """

    def __init__(self, address_width: int, data_width: int) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(request(address_width))),
                "data": Out(stream.Signature(write_data(data_width))),
                "response": In(stream.Signature(1)),
            }
        )


def memory_members(
    address_width: int, data_width: int, read_ports: int
) -> dict[str, wiring.Member]:
    """Return the ports of a memory for an engine: the readers ``a`` and ``b``, and ``write``.

    ``b`` exists only with two read ports. Raises ``ValueError`` if ``read_ports`` is neither 1
    nor 2.
    """
    if read_ports not in (1, 2):
        raise ValueError(f"read_ports: {read_ports} is neither 1 nor 2")
    readers = dict.fromkeys("ab"[:read_ports], In(ReadPort(address_width, data_width)))
    return {**readers, "write": In(WritePort(address_width, data_width))}
