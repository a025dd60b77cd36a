"""Frames of the serial link as bytes on the line: encoding requests, decoding answers.

``bitlane_rtl.abi.frames`` specifies them. The only state between frames is the start of an
incomplete one; no bytes from the line raise an error.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final
from zlib import crc32

from bitlane_rtl.abi.frames import (
    ANSWER_HEADER_BYTES,
    CRC_BYTES,
    DELIMITER,
    FRAME_DATA_BYTES,
    INTERRUPT_BIT,
    REQUEST_HEADER_BYTES,
    Request,
)

BOUNDARY: Final = bytes((DELIMITER,))
"""The delimiter that ends a frame on the line. Alone it ends any earlier garbage."""

_BLOCK_BYTES: Final = 254
"""Most bytes of a COBS block."""

_FULL_CODE: Final = _BLOCK_BYTES + 1
"""The code of a block that no zero follows."""

_CODES: Final = tuple(bytes((code,)) for code in range(256))
_HEADER: Final = Struct("<BBHI")
_REPLY_HEADER: Final = Struct("<BB")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that arrived undamaged."""

    sequence: int
    kind: int
    """An ``abi.frames.Answer``, or a number that the contract does not have."""
    interrupt: bool
    data: bytes


def encode(content: bytes) -> bytes:
    """``content`` in COBS, codes before their blocks; no byte is zero."""
    parts: list[bytes] = []
    for run in content.split(b"\0"):
        start = 0
        while len(run) - start >= _BLOCK_BYTES:
            parts += (_CODES[_FULL_CODE], run[start : start + _BLOCK_BYTES])
            start += _BLOCK_BYTES
        parts += (_CODES[len(run) - start + 1], run[start:])
    return b"".join(parts)


def decode_backward(block: bytes) -> bytes | None:
    """Decode ``block``, COBS with the codes after their blocks; return None if it is damaged."""
    content = bytearray(block)
    position = len(content) - 1
    without_zero: list[int] = []
    while position >= 0:
        code = content[position]
        if code == _FULL_CODE:
            without_zero.append(position)
        elif code == 0:
            return None
        content[position] = 0
        position -= code
    if position != -1 or not content:
        return None
    for place in without_zero:
        del content[place]
    if block[-1] != _FULL_CODE:
        del content[-1]
    return bytes(content)


def encode_request(
    request: Request, sequence: int, address: int, size: int, data: bytes = b""
) -> bytes:
    """The bytes on the line of a request, its delimiter included.

    ``address`` is less than 2**32, ``size`` at most ``FRAME_DATA_BYTES``. ``data`` is what a WRITE
    carries, ``size`` bytes; empty for the others.
    """
    content = _HEADER.pack(sequence, request, size, address) + data
    return encode(content + crc32(content).to_bytes(CRC_BYTES, "little")) + BOUNDARY


def decode_answer(block: bytes) -> Reply | None:
    """The answer that came as ``block``, without its delimiter; None if it was damaged."""
    content = decode_backward(block)
    if content is None or len(content) < ANSWER_HEADER_BYTES + CRC_BYTES:
        return None
    body = content[:-CRC_BYTES]
    if crc32(body).to_bytes(CRC_BYTES, "little") != content[-CRC_BYTES:]:
        return None
    sequence, second = _REPLY_HEADER.unpack_from(body)
    interrupt = second >> INTERRUPT_BIT
    kind = second & (1 << INTERRUPT_BIT) - 1
    return Reply(sequence, kind, bool(interrupt), body[ANSWER_HEADER_BYTES:])


def request_room(data_bytes: int) -> int:
    """Bytes that a board buffers of a request that carries ``data_bytes``."""
    return REQUEST_HEADER_BYTES + data_bytes + CRC_BYTES


def request_line_bytes(data_bytes: int) -> int:
    """Most bytes on the line of a request that carries ``data_bytes``."""
    return _line_bytes(request_room(data_bytes))


def answer_line_bytes(data_bytes: int) -> int:
    """Most bytes on the line of an answer that carries ``data_bytes``."""
    return _line_bytes(ANSWER_HEADER_BYTES + data_bytes + CRC_BYTES)


def _line_bytes(content_bytes: int) -> int:
    return content_bytes + content_bytes // _BLOCK_BYTES + 1 + len(BOUNDARY)


_LONGEST: Final = answer_line_bytes(FRAME_DATA_BYTES)


class Deframer:
    """Splits the bytes from the line into frames, and drops frames longer than any answer."""

    def __init__(self) -> None:
        self._start = b""
        self._overlong = False

    def feed(self, data: bytes) -> tuple[list[bytes], int]:
        """The frames that ``data`` completes, and how many were dropped for their length."""
        *blocks, rest = data.split(BOUNDARY)
        dropped = 0
        frames: list[bytes] = []
        for block in blocks:
            if self._start:
                block = self._start + block
                self._start = b""
            if self._overlong or len(block) >= _LONGEST:
                self._overlong = False
                dropped += 1
            elif block:
                frames.append(block)
        self._start += rest
        if len(self._start) >= _LONGEST:
            self._start = b""
            self._overlong = True
        return frames, dropped
