"""The contract of frames, the requests and answers of every line. Plain data only.

A frame is whole words of 4 bytes, little-endian: a header and the words of its data. The data of a
WRITE, and those of the answer to a READ, have the same offset in their words as in the memory:
ADDRESS modulo 4 bytes precede them, and up to 3 bytes follow them. The board ignores these bytes in
a request; in an answer they are undefined.

The board accepts a request if its sequence number is the expected one, and then expects the next. A
request with one of the REPETITIONS numbers before the expected one is accepted as a repetition: a
write is answered like the first time and not executed again, a read is executed again. A host must
therefore send nothing that could change the data of a read until that read has been answered, and
must never have more than REPETITIONS requests unanswered, or the board would mistake a request for
the repetition of another. A frame that is damaged, or has any other number, is dropped. The first
one that is dropped since a request, new or repeated, was accepted is answered with EXPECTED,
perhaps before requests that were accepted earlier, and not at all if the expected request arrives
first. HELLO is accepted with any number.

Requests are executed and answered in their order. A word of the control window is read or written
in one cycle. The interrupt line is sampled when an answer starts: before the data of a READ are
read, after the data of a WRITE are written.

On the serial line the words of a frame are sent with the CRC-32 of them (least significant byte
first, the one of zlib and Ethernet), framed with COBS (Cheshire and Baker, 1999) so that no byte is
zero, and a zero, the delimiter. `datagrams` is the contract of a network.

COBS divides the bytes into blocks of up to 254 bytes that are not zero. A block's code is its
length plus 1. A code below 255 means that a zero follows the block, except after the frame's last
block; code 255 means that none follows. In requests a code precedes its block, as usual, so that a
circuit decodes them without a buffer; a 255 that ends the frame may be followed by a 1. In answers
a code follows its block, so that a circuit encodes them without a buffer: 254 bytes are followed by
255 as soon as they are sent, and a frame's last code is always below 255. The board ignores an
empty frame, between two delimiters; a host starts with a delimiter, so that earlier bytes on the
line do not become a part of its first frame.

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
    "LEAST_DIVIDER",
    "LINK_VERSION",
    "RECEIVE_BYTES",
    "REPETITIONS",
    "REQUEST_HEADER_BYTES",
    "SEQUENCES",
    "Answer",
    "Request",
]

LINK_VERSION = 2
"""Changes whenever a frame changes its meaning. A HELLO with a number below 256 has the same bytes
in every version, so that a board of another version answers it."""

DEFAULT_BAUD = 3_000_000
"""Bits a second, a start and a stop bit around each byte: what FTDI's bridges make exactly."""

LEAST_DIVIDER = 8
"""Clocks per bit below which a board's sampling of its line is too coarse."""

DELIMITER = 0

SEQUENCES = 1 << 14
"""Sequence numbers are counted modulo this."""

REPETITIONS = SEQUENCES // 2
"""Sequence numbers before the expected one that mark a repetition. It is also the most requests
that are unanswered at any time."""

FRAME_DATA_BYTES = 512
"""The most data that a frame carries. A SIZE above it is refused, or dropped as damaged."""

RECEIVE_BYTES = 2048
"""Bytes of requests, with header and CRC, that a board can buffer until it answers them.

The host never has more than this in flight, so the buffer never overflows.
"""

REQUEST_HEADER_BYTES = 8
"""A word and ADDRESS. The word: bits 7:0 of SEQUENCE in bits 7:0, `Request` in bits 15:8, SIZE of
the data to read or write in bits 25:16, bits 13:8 of SEQUENCE in bits 31:26. A HELLO has a number
of the host's choice in ADDRESS, SIZE 0, and a SEQUENCE below 256. A WRITE is followed by its data,
any other kind, known or not, by none. SIZE 0 is legal at every address: such a READ returns the
interrupt line alone, and no word of data belongs to it."""

ANSWER_HEADER_BYTES = 4
"""A word like that of a request: SEQUENCE of the request (of EXPECTED: the number that is
expected), `Answer` and INTERRUPT_BIT, SIZE of the data that follow. The answer DONE to a READ is
followed by its data, the one to a HELLO by HELLO_BYTES; every other one has SIZE 0."""

HELLO_BYTES = 8
"""LINK_VERSION (1 byte), 0 (1), RECEIVE_BYTES (2), the ADDRESS of the HELLO (4)."""

CRC_BYTES = 4

INTERRUPT_BIT = 7
"""Bit of the second byte of an answer: the level of the device's interrupt line."""


class Request(IntEnum):
    """The kind of a frame to the board."""

    READ = 0
    WRITE = 1
    HELLO = 2
    """Starts a session: the next number expected is the one after this frame's."""


class Answer(IntEnum):
    """The result of a request: bits 6:0 of an answer's second byte."""

    DONE = 0
    REFUSED = 1
    """Nothing was executed: unknown kind, an address outside memory and control window, an access
    to the control window that is not made of whole aligned words, or a HELLO with a SIZE."""
    EXPECTED = 2
    """A frame was damaged or out of turn: send again from this sequence number on."""
