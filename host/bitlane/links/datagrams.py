"""Datagrams of the network link as bytes: encoding requests, decoding answers.

``bitlane_rtl.abi.datagrams`` specifies them. No bytes from the network raise an error.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final
from zlib import crc32

from bitlane_rtl.abi.datagrams import (
    DATAGRAM_ANSWER_HEADER_BYTES,
    DATAGRAM_BYTES,
    DATAGRAM_RECEIVE_BYTES,
    GOODBYE,
    SESSION_BYTES,
    STORED_HEADER_BYTES,
)
from bitlane_rtl.abi.frames import (
    CRC_BYTES,
    INTERRUPT_BIT,
    REQUEST_HEADER_BYTES,
    SEQUENCES,
    Request,
)

from .line import Fragment, FrameSizes, Line, LineCost, Reply

_HEADER: Final = Struct("<BBHI")
_ANSWER_HEADER: Final = Struct("<BBH")
_CRC: Final = Struct("<I")

_RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of any bytes that are followed by their own CRC-32."""

_KIND: Final = (1 << INTERRUPT_BIT) - 1
_SEQUENCE_MASK: Final = SEQUENCES - 1

FRAME_BYTES: Final = 480
"""Data of a frame: three frames fill a datagram to its last byte."""


class DatagramLine(Line):
    """The datagrams of the session ``number``, which is not 0.

    A datagram's requests are limited so that their answers are one datagram, too.
    """

    # Ethernet drops a damaged datagram as a whole: smaller frames would lose nothing less.
    sizes = FrameSizes(start=FRAME_BYTES, least=FRAME_BYTES, most=FRAME_BYTES)
    noisy_packets = 128
    fragment_frames = 3
    packet_bytes = DATAGRAM_BYTES - SESSION_BYTES - CRC_BYTES
    packet_room = SESSION_BYTES + CRC_BYTES + STORED_HEADER_BYTES
    buffer_bytes = DATAGRAM_RECEIVE_BYTES
    answers_bytes = 1 << 16
    least_wait = 0.002
    latency_bytes = 4_000

    def __init__(self, number: int) -> None:
        self._session = number.to_bytes(SESSION_BYTES, "little")

    def cost(self, request: Request, size: int) -> LineCost:
        return _cost(request, size)

    def encode(self, sequence: int, fragments: Sequence[Fragment]) -> bytes:
        parts: list[bytes | memoryview] = [self._session]
        for request, address, content in fragments:
            size = len(content)
            for start in range(0, size or 1, FRAME_BYTES):
                data = content[start : start + FRAME_BYTES] if size > FRAME_BYTES else content
                count = len(data)
                parts.append(_HEADER.pack(sequence, request, count, address + start))
                sequence = sequence + 1 & _SEQUENCE_MASK
                if request is Request.WRITE:
                    parts.append(data)
                    if count & 3:
                        parts.append(bytes(-count & 3))
        return _with_crc(b"".join(parts))

    def encode_hello(self, sequence: int, number: int) -> bytes:
        return self._encode_alone(sequence, Request.HELLO, number)

    def encode_goodbye(self, sequence: int) -> bytes:
        """Return the datagram of a GOODBYE."""
        return self._encode_alone(sequence, GOODBYE, 0)

    def _encode_alone(self, sequence: int, kind: int, address: int) -> bytes:
        return _with_crc(self._session + _HEADER.pack(sequence, kind, 0, address))

    def decode(self, datagram: memoryview) -> list[Reply] | None:
        """Return the answers of ``datagram``; None if it is damaged, or of another session.

        The answers refer to the bytes of ``datagram``.
        """
        if crc32(datagram) != _RESIDUE or datagram[:SESSION_BYTES] != self._session:
            return None
        replies: list[Reply] = []
        more: list[memoryview] = []
        following, before = -1, -1
        place, end = SESSION_BYTES, len(datagram) - CRC_BYTES
        while place + DATAGRAM_ANSWER_HEADER_BYTES <= end:
            sequence, second, size = _ANSWER_HEADER.unpack_from(datagram, place)
            place += DATAGRAM_ANSWER_HEADER_BYTES
            data = datagram[place : place + size]
            place += size + 3 & -4
            if sequence == following and second == before:
                more.append(data)
            else:
                more = []
                replies.append(Reply(sequence, second & _KIND, second > _KIND, data, more))
            following, before = sequence + 1 & _SEQUENCE_MASK, second
        return replies if place == end else None


@lru_cache(4096)
def _cost(request: Request, size: int) -> LineCost:
    frames = -(-size // FRAME_BYTES) or 1
    sent, received = frames * REQUEST_HEADER_BYTES, frames * DATAGRAM_ANSWER_HEADER_BYTES
    if request is Request.WRITE:
        sent += size + 3 & -4
    else:
        received += size + 3 & -4
    return LineCost(frames, sent, sent, received)


def _with_crc(body: bytes) -> bytes:
    return body + _CRC.pack(crc32(body))
