"""The seconds that a link's line takes: those of its bits, not of a host or its operating system.

Requests go out while answers come in, so a long transfer takes what its larger direction takes.
"""

from dataclasses import dataclass

from bitlane.links import FRAME_BYTES, SERIAL, DatagramLine, answer_line_bytes, request_line_bytes
from bitlane_rtl.abi import ANSWER_HEADER_BYTES, DATAGRAM_BYTES, REQUEST_HEADER_BYTES, Request

_SERIAL_BITS = 10
"""Bits of a byte on a serial line: a start and a stop bit around eight."""

_GIGABIT = 125_000_000
"""Bytes a second."""

_AROUND = 8 + 14 + 20 + 8 + 4 + 12
"""Bytes of a datagram on Ethernet: preamble, the headers of MAC, IPv4 and UDP, FCS and gap."""

_LEAST = 84
"""Bytes of the shortest frame, with preamble and gap (IEEE 802.3, clause 4.4.2)."""

_BOARD_SECONDS = 0.65e-6
"""Seconds between the two frames of a READ of 4 bytes, simulated at the pins of ``colorlight-i5``.

docs/measurements/network.json has times of single requests; a test compares `LineTime` with them.
"""


@dataclass(frozen=True, slots=True)
class LineTime:
    """The time of each direction of a line, and of a request's way there and back."""

    name: str
    """The line for people: ``serial line of 3,000,000 baud``."""

    up: float
    """Seconds of a byte of data to the board, in a long write."""

    down: float
    """Seconds of a byte of data from the board, in a long read."""

    request: float
    """Seconds from the first bit of a request without data to the last bit of its answer."""

    def write(self, size: int) -> float:
        """Return the seconds of a write of ``size`` bytes."""
        return self.request + size * self.up

    def read(self, size: int) -> float:
        """Return the seconds of a read of ``size`` bytes."""
        return self.request + size * self.down


def serial_line(baud: int) -> LineTime:
    """Return the times of a serial line of ``baud`` bits a second (`bitlane_rtl.abi.frames`)."""
    byte, data = _SERIAL_BITS / baud, SERIAL.sizes.most
    return LineTime(
        f"serial line of {baud:,} baud",
        up=byte * request_line_bytes(Request.WRITE, data) / data,
        down=byte * answer_line_bytes(Request.READ, data) / data,
        request=byte * (request_line_bytes(Request.READ, 0) + answer_line_bytes(Request.READ, 0)),
    )


def gigabit_line() -> LineTime:
    """Return the times of gigabit Ethernet (`bitlane_rtl.abi.datagrams`)."""
    frames = DatagramLine.fragment_frames
    data = frames * FRAME_BYTES
    around = DATAGRAM_BYTES - DatagramLine.packet_bytes + _AROUND
    return LineTime(
        "gigabit Ethernet",
        up=(data + around + frames * REQUEST_HEADER_BYTES) / data / _GIGABIT,
        down=(data + around + frames * ANSWER_HEADER_BYTES) / data / _GIGABIT,
        request=2 * _LEAST / _GIGABIT + _BOARD_SECONDS,
    )
