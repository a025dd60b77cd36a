"""The contract of datagrams on a network, between host and board. Plain data only.

A datagram is the payload of UDP: SESSION (4 bytes), frames, and the CRC-32 of all bytes before it
(least significant byte first, the one of zlib and Ethernet). Numbers are little-endian. Frames have
the words, the numbers and the rules of `frames`, without their CRCs and without COBS.

A datagram carries one or more requests. The board executes them in order. Their answers make one
datagram with the same SESSION, which goes to the address from which the requests came; an answer
that does not fit any more starts another one. A datagram whose CRC, length or SESSION is wrong is
dropped as a whole, and so is one whose source port is the board's. A request that is out of turn is
answered with EXPECTED, the first one since a request was accepted; those behind it in the same
datagram are out of turn, whatever their numbers. For this rule, neither GOODBYE nor a HELLO that
starts no session is an accepted request.

A session belongs to one host. HELLO is the only frame of its datagram, and its SESSION is a random
number that is not 0. It starts that session if no other session is alive, or if bit TAKE_OVER of
its ADDRESS is 1; otherwise it is answered with BUSY. A session is alive until GOODBYE, or until
SESSION_SECONDS after its last datagram. A session that has expired goes on until a HELLO starts
another one. A HELLO of the session that was started last is a late copy: it is answered, and
changes no number. One of the session before that one is a late copy, too, and is answered with
BUSY. Only a request that was accepted since the HELLO that started the session has a repetition: a
late HELLO restarts the numbers, and the old host's requests are out of turn then. A HELLO or
GOODBYE that has a SIZE, or is not alone, makes the length of its datagram wrong. Nothing is
authenticated: everybody on the network can take over a board.

Units: bytes unless a name says otherwise.
"""

__all__ = [
    "BUSY",
    "DATAGRAM_BYTES",
    "DATAGRAM_RECEIVE_BYTES",
    "DEFAULT_PORT",
    "GOODBYE",
    "SESSION_BYTES",
    "SESSION_SECONDS",
    "STORED_HEADER_BYTES",
    "TAKE_OVER",
]

DEFAULT_PORT = 45438
"""The UDP port of a board, unless its build chooses another."""

SESSION_BYTES = 4

DATAGRAM_BYTES = 1472
"""The most bytes of a datagram: what an Ethernet frame carries without fragments."""

DATAGRAM_RECEIVE_BYTES = 28_672
"""Bytes that a board can buffer until it answers them; in the answer to a HELLO in place of
RECEIVE_BYTES. Of each datagram it holds the bytes and STORED_HEADER_BYTES."""

STORED_HEADER_BYTES = 24

GOODBYE = 3
"""Kind of a request, beside those of `frames.Request`: ends the session of its datagram. It is the
only frame of its datagram, accepted with any number, which changes no expected number, and answered
with DONE."""

BUSY = 3
"""Kind of an answer, beside those of `frames.Answer`: another session is alive, or has followed the
HELLO's. It has no data."""

TAKE_OVER = 0
"""Bit of a HELLO's ADDRESS. The other bits are of the host's choice."""

SESSION_SECONDS = 5
"""Seconds after its last datagram for which a session is alive, at least; less than twice that."""
