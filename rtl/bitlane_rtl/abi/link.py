"""The contract of the serial link: frames between host and board. Plain data only.

A frame goes over the line as its bytes, the CRC-32 of them (least significant byte first, the one
of zlib and Ethernet), framed so that no byte but the delimiter, 0, is zero, and the delimiter.
Requests are framed with COBS (Cheshire and Baker, 1999), which a circuit decodes without a buffer.
Answers are framed with COBS run backwards, code bytes behind their blocks, which a circuit encodes
without a buffer. Numbers are little-endian.

The board executes a request if its sequence number is the expected one, and then expects the next.
One of the 128 numbers before that is a repetition: a write is answered and not executed again, a
read is executed again. A host therefore sends nothing that could change what a read gives until
that read has been answered. Any other number, and a frame that is damaged, is dropped and answered
with EXPECTED, once until the expected request comes. HELLO is taken whatever its number.

Units: bytes unless a name says otherwise.
"""

from enum import IntEnum

__all__ = [
    "ANSWER_HEADER_BYTES",
    "CRC_BYTES",
    "DEFAULT_BAUD",
    "DELIMITER",
    "FRAME_DATA_BYTES",
    "HELLO_BYTES",
    "INTERRUPT_BIT",
    "LINK_VERSION",
    "RECEIVE_BYTES",
    "REQUEST_HEADER_BYTES",
    "SEQUENCES",
    "Answer",
    "Request",
]

LINK_VERSION = 1
"""Changes whenever a frame changes its meaning."""

DEFAULT_BAUD = 3_000_000
"""Bits a second, a start and a stop bit around each byte: what FTDI's bridges make exactly."""

DELIMITER = 0

SEQUENCES = 256
"""Sequence numbers are counted modulo this."""

FRAME_DATA_BYTES = 512
"""The most data that a frame carries."""

RECEIVE_BYTES = 2048
"""What a board buffers of requests that it has not answered yet, header and CRC of each included.

The host never has more than this on the way, so nothing is lost for want of room.
"""

REQUEST_HEADER_BYTES = 8
"""SEQUENCE (1 byte), `Request` (1), SIZE of the data to read or write (2), ADDRESS (4); a HELLO
has a number of the host's choice in ADDRESS, and SIZE 0. A WRITE is followed by its data."""

ANSWER_HEADER_BYTES = 2
"""SEQUENCE of the request (of EXPECTED: the number that is expected), `Answer` and INTERRUPT_BIT.
The answer DONE to a READ is followed by its data, the one to a HELLO by HELLO_BYTES."""

HELLO_BYTES = 8
"""LINK_VERSION (1 byte), 0 (1), RECEIVE_BYTES (2), the ADDRESS of the HELLO (4)."""

CRC_BYTES = 4

INTERRUPT_BIT = 7
"""Bit of an answer's second byte: the level of the device's interrupt line."""


class Request(IntEnum):
    """What a frame to the board asks for."""

    READ = 0
    WRITE = 1
    HELLO = 2
    """Starts a session: the next number expected is the one after this frame's."""


class Answer(IntEnum):
    """How a request ended; bits 6:0 of an answer's second byte."""

    DONE = 0
    REFUSED = 1
    """Nothing was executed: unknown kind, an address outside memory and control window, or an
    access to the control window that is not made of whole aligned words."""
    EXPECTED = 2
    """A frame was damaged or out of turn: send again from this sequence number on."""
